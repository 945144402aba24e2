"""Ways out of a failing call: candidates in the order in which a person should try them, each simulated.

The order follows two questions. Is the part that was reached again needed a second time on purpose
(several losses, the same loss), or was it carried over? And would cutting it off take the gradient
from leaves that have no other way to it? An optimizer step in between rules out keeping the graph:
the saved weights are then out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from graphwidget.analysis import engine
from graphwidget.analysis.story import Meeting, where
from graphwidget.analysis.surgery import cut, with_nodes_held, with_nothing_stale
from graphwidget.model import BackwardCall, Fix, Forecast, Place, SlotState, Snapshot, TensorRef, Write

MOST = 3


def simulate(graph: Snapshot, call: BackwardCall, roots: tuple[TensorRef, ...] | None = None) -> Forecast:
    """What `call` would do on `graph`."""
    return engine.forecast(
        graph,
        roots if roots is not None else call.roots,
        inputs=call.inputs,
        retain_graph=call.retain_graph,
        create_graph=call.create_graph,
        api=call.api,
        grad_given=True,
    )


def at(place: Place | None) -> tuple[int, int] | None:
    """(cell, line) of the line to change: the outermost frame's."""
    if place is None or place.cell is None or place.line is None:
        return None
    return (place.cell, place.line)


def kept_bytes(meeting: Meeting) -> int:
    """Bytes that the old part would keep if the earlier call had retained."""
    graph = meeting.graph
    return sum(
        graph.slot_bytes[slot]
        for index in meeting.old
        for slot in graph.slots_of(index)
        if graph.slot_freed_by[slot] == meeting.earlier.n
    )


def size(count: int) -> str:
    """Bytes as people write them."""
    if count < 1000:
        return f"{count} B"
    for unit in ("KB", "MB", "GB"):
        count_in = count / 1000
        if count_in < 1000 or unit == "GB":
            return f"{count_in:.1f} {unit}"
        count = int(count_in)
    return f"{count} B"


def names(paths: tuple[str, ...], most: int = 3) -> str:
    """`a`, `b` and 2 more."""
    shown = [f"`{p}`" for p in paths[:most]]
    if len(paths) > most:
        return ", ".join(shown) + f" and {len(paths) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


class Candidates:
    """Fixes for one meeting. Each method makes one candidate, simulated."""

    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting
        self.later = meeting.later
        self.earlier = meeting.earlier

    # simulations

    def _kept_is_stale(self) -> bool:
        """Whether something that the earlier call freed has been modified in place since."""
        graph = self.meeting.graph
        written = {key for write in self.meeting.writes_between for key in write.storages}
        before = self.earlier.graph or graph
        for uid in self.earlier.executed:
            index = before.index_of.get(uid)
            for slot in before.slots_of(index) if index is not None else ():
                storage = before.slot_storage[slot]
                if storage >= 0 and before.storages[storage].key in written:
                    return True
        return bool(self.meeting.steps_between and not self.earlier.graph)

    def _works_if_kept(self) -> bool:
        if self._kept_is_stale():
            return False
        return simulate(with_nodes_held(self.meeting.graph, self.meeting.old), self.later).ok is True

    def _works_if_fresh(self) -> bool:
        graph = with_nothing_stale(with_nodes_held(self.meeting.graph, self.meeting.old))
        return simulate(graph, self.later).ok is True

    def _works_if_cut(self) -> bool:
        forecast = simulate(cut(self.meeting.graph, self.meeting.old), self.later)
        return forecast.ok is True and (bool(forecast.reaches) or self.later.inputs is not None)

    # candidates

    def retain(self) -> Fix:
        line = self.meeting.text_of(self.earlier.place)
        price = f"{size(kept_bytes(self.meeting))} of saved tensors stay until the graph goes."
        if self.meeting.in_loop:
            price += " The last iteration need not retain."
        return Fix(
            "retain_graph_earlier_call",
            f"Keep what the first call frees: `retain_graph=True` in {self._call(self.earlier)}.",
            self._works_if_kept(),
            at(self.earlier.place),
            price,
            _with_retain(line),
        )

    def recompute(self) -> Fix:
        made = self.meeting.carrier_place
        text = self.meeting.text_of(made)
        what = f"`{text}` ({where(made)})" if text else f"the forward pass that makes `{self.meeting.carrier}`"
        if self.meeting.in_loop:
            sentence = f"Move {what} into the loop, so that each iteration builds its own graph."
        else:
            sentence = f"Run {what} again before {self._call(self.later)}: it builds a fresh graph."
        return Fix(
            "recompute_in_loop", sentence, self._works_if_fresh(), at(made), "One more forward pass of that part."
        )

    def detach(self) -> Fix:
        carrier = self.meeting.carrier
        lost = self.meeting.leaves_lost
        price = f"Then {names(lost)} get no gradient from this call." if lost else self._price_of_cut()
        made = self.meeting.carrier_place
        return Fix(
            "detach",
            f"Cut the graph at `{carrier}`: use `{carrier}.detach()`" + self._before_line() + ".",
            self._works_if_cut(),
            at(self.later.place) if made is None else at(made),
            price,
        )

    def detach_in_earlier(self) -> Fix:
        carrier = self.meeting.carrier
        return Fix(
            "detach",
            f"Use `{carrier}.detach()` for {self._call(self.earlier)}: its step does not train what lies behind.",
            self._works_if_fresh(),
            at(self.earlier.place),
            f"The first call then gives {names(self.meeting.leaves_lost)} no gradient.",
        )

    def sum_of_losses(self) -> Fix:
        first, second = self._root(self.earlier), self._root(self.later)
        graph = with_nothing_stale(with_nodes_held(self.meeting.graph, self.meeting.old))
        works = simulate(graph, self.later).ok is True and not self.meeting.built_after
        return Fix(
            "single_backward_sum",
            f"Run backward once: `({first} + {second}).backward()`.",
            works,
            at(self.later.place),
            "Same gradients, one pass, nothing retained.",
        )

    def rerun_cell(self) -> Fix:
        made = self.meeting.graph.place_of(self.meeting.root_indices[0]) if self.meeting.root_indices else None
        cell = f"In[{made.cell}]" if made is not None and made.cell is not None else "the cell that computes it"
        return Fix(
            "rerun_forward_cell",
            f"Run {cell} again before this one: it computes `{self.meeting.root_name}` anew.",
            self._works_if_fresh(),
            at(made),
            "One more forward pass.",
        )

    def remove_duplicate(self) -> Fix:
        return Fix(
            "remove_duplicate_call",
            f"Remove one of the two calls: {self._call(self.earlier)} has already run backward on this graph.",
            self.meeting.same_root,
            at(self.later.place),
            "None: `.grad` has been filled by the first call.",
        )

    def clear(self) -> Fix:
        buffer = self.meeting.buffer or self.meeting.carrier
        return Fix(
            "clear_buffer",
            f"Empty `{buffer}` after {self._call(self.earlier)}: `{buffer}.clear()`.",
            self._works_if_fresh(),
            at(self.earlier.place),
            "What it holds is used once.",
        )

    # words

    def _price_of_cut(self) -> str:
        leaves = {
            self.meeting.leaf_name(i)
            for i in self.meeting.reached
            if i in self.meeting.graph.leaves and i not in self.meeting.exclusive_leaves
        }
        shown = names(tuple(sorted(leaves)))
        when = "earlier iterations" if self.meeting.in_loop else "the earlier part"
        return f"{shown} get no gradient from {when}." if shown else ""

    def _before_line(self) -> str:
        return f" before {where(self.later.place)}" if where(self.later.place) else ""

    def _call(self, call: BackwardCall) -> str:
        return where(call.place) or f"call {call.n + 1}"

    def _root(self, call: BackwardCall) -> str:
        path = call.roots[0].path if call.roots else None
        if path:
            return path.rsplit(":", 1)[-1]
        text = call.place.source.strip()
        return text.split(".backward(", 1)[0] if ".backward(" in text else "the other loss"


def _with_retain(line: str) -> tuple[str, ...]:
    """The line and the line with retain_graph=True, as an edit; nothing where it is not a plain call."""
    for empty in (".backward()",):
        if line.endswith(empty):
            return (f"- {line}", f"+ {line[: -len(empty)]}.backward(retain_graph=True)")
    return ()


def for_second_backward(meeting: Meeting) -> tuple[Fix, ...]:
    """Verified fixes first, in the order of preference of their kind; at most three."""
    make = Candidates(meeting)
    return best(_same_root_order(meeting, make) if meeting.same_root else _shared_part_order(meeting, make))


def _same_root_order(meeting: Meeting, make: Candidates) -> Iterator[Callable[[], Fix]]:
    """The later call runs the same tensor, or one inside the old part, once more."""
    if meeting.same_cell_again:
        yield make.rerun_cell
        yield make.retain
        return
    if meeting.called_by_callee:
        yield make.remove_duplicate
    if meeting.steps_between or meeting.in_loop:
        yield make.recompute
        if not meeting.steps_between:
            yield make.retain
        return
    yield make.retain
    yield make.recompute
    if meeting.earlier.place.run == meeting.later.place.run:
        yield make.remove_duplicate


def _shared_part_order(meeting: Meeting, make: Candidates) -> Iterator[Callable[[], Fix]]:
    """The later call brought a part of its own and met the old one."""
    repeated = meeting.in_loop or bool(meeting.steps_between)
    if not meeting.built_after:
        yield from _losses_built_before(meeting, make)
    elif meeting.buffer and meeting.exclusive_leaves:
        yield make.clear
        yield make.recompute
    elif repeated and (not meeting.exclusive_leaves or meeting.carried_state):
        yield make.detach
        yield make.recompute
    elif meeting.steps_between and not _stepped_behind(meeting):
        yield make.detach_in_earlier
        yield make.recompute
    elif repeated:
        yield make.recompute
        if not meeting.steps_between:
            yield make.retain
        yield make.detach
    else:
        yield make.retain
        yield make.recompute
        yield make.detach


def _losses_built_before(meeting: Meeting, make: Candidates) -> Iterator[Callable[[], Fix]]:
    """Both losses existed when the first call began: they share a part on purpose, or by oversight."""
    if meeting.steps_between:
        yield make.detach
        yield make.recompute
        return
    yield make.sum_of_losses
    yield make.retain
    yield make.detach


def _stepped_behind(meeting: Meeting) -> bool:
    """Whether a step in between modified a leaf that only the old part reaches."""
    behind = {path for i in meeting.exclusive_leaves for path in meeting.graph.leaves[i].paths}
    return bool(behind & meeting.stepped_leaves)


def for_inplace(
    call: BackwardCall, graph: Snapshot, write: Write | None, meeting: Meeting | None, tensor: str
) -> tuple[Fix, ...]:
    """Fixes for a call that met a saved tensor modified in place. `meeting`: an earlier call over the same nodes."""
    if write is not None and write.optimizer:
        return best(_after_a_step(call, graph, write, meeting))
    return best(_after_a_write(call, graph, write, tensor))


def _after_a_step(
    call: BackwardCall, graph: Snapshot, write: Write, meeting: Meeting | None
) -> Iterator[Callable[[], Fix]]:
    fresh = simulate(with_nothing_stale(graph), call).ok is True
    if meeting is not None and not meeting.same_root and meeting.built_after:
        make = Candidates(meeting)
        yield make.detach
    elif meeting is not None and meeting.same_root:
        yield lambda: Fix(
            "recompute_in_loop",
            f"Run the forward pass again after `{write.by}`: it saves the new weights.",
            fresh,
            at(graph.place_of(meeting.root_indices[0])),
            "One more forward pass.",
        )
    yield lambda: Fix(
        "zero_grad_or_step_order",
        f"Run every backward before `{write.by}` ({where(write.place)}) changes the weights.",
        fresh,
        at(write.place),
        "None.",
    )
    if meeting is not None and not meeting.same_root and not meeting.built_after:
        yield Candidates(meeting).detach


def _after_a_write(
    call: BackwardCall, graph: Snapshot, write: Write | None, tensor: str
) -> Iterator[Callable[[], Fix]]:
    fresh = simulate(with_nothing_stale(graph), call).ok is True
    by = f"`{write.by}` ({where(write.place)})" if write else "the in-place operation"
    yield lambda: Fix(
        "out_of_place",
        f"Write the result to a new tensor instead of {by}.",
        fresh,
        at(write.place) if write else None,
        "One more tensor of that size.",
        _out_of_place(write.by) if write else (),
    )
    yield lambda: Fix(
        "clone_before_inplace",
        f"Modify a copy: `{tensor} = {tensor}.clone()` before {by}.",
        fresh,
        at(write.place) if write else None,
        "One more tensor of that size.",
    )


_AUGMENTED = {"+=": "+", "-=": "-", "*=": "*", "/=": "/", "**=": "**", "@=": "@"}


def _out_of_place(statement: str) -> tuple[str, ...]:
    """``out += x`` as ``out = out + x``; nothing for other statements."""
    for sign, plain in _AUGMENTED.items():
        left, found, right = statement.partition(f" {sign} ")
        if found and left.isidentifier():
            return (f"- {statement}", f"+ {left} = {left} {plain} {right}")
    return ()


def best(candidates: Iterator[Callable[[], Fix]]) -> tuple[Fix, ...]:
    """At most three: the verified ones in the order given, then, if there is none, the others."""
    made = [make() for make in candidates]
    verified = [fix for fix in made if fix.verified]
    return tuple((verified or made)[:MOST])


def stale_slots(graph: Snapshot) -> list[int]:
    return [slot for slot, state in enumerate(graph.slot_state) if state == SlotState.STALE]
