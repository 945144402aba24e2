"""Ways out of a failing call: candidates in the order in which a person should try them, each simulated.

The order follows two questions. Is the part that was reached again needed a second time on purpose
(several losses, the same loss), or was it carried over? And would cutting it off take the gradient
from leaves that have no other way to it? An optimizer step in between rules out keeping the graph:
the saved weights are then out of date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cached_property

from graphwidget.diagnosis.fixes.clear import refilled
from graphwidget.diagnosis.fixes.cuts.cut import Cut, Cuts, after_call
from graphwidget.diagnosis.fixes.rerun import made_once
from graphwidget.diagnosis.fixes.rerun.plan import Rerun, rerun
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.reuse.named_edges import Crossings
from graphwidget.diagnosis.reuse.reuse import Meeting, root_name
from graphwidget.diagnosis.source import edits, fitting
from graphwidget.diagnosis.source import paths as detaching
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import at, no_gradient, number, outer_at, short, where
from graphwidget.engine import forecast as engine
from graphwidget.engine.what_if import anything_stale, bytes_held, cut, reachable, with_nodes_held, with_nothing_stale
from graphwidget.model import BackwardCall, Fix, Forecast, Place, Snapshot, bytes_text


def simulate(graph: Snapshot, call: BackwardCall) -> Forecast:
    """What `call` would do on `graph`."""
    return engine.forecast(
        graph,
        call.roots,
        inputs=call.inputs,
        retain_graph=call.retain_graph,
        create_graph=call.create_graph,
        api=call.api,
        grad_given=True,
    )


def kept_bytes(meeting: Meeting) -> int:
    """Bytes that the old part would keep if the earlier call had retained."""
    graph, before = meeting.graph, meeting.earlier.graph
    freed = [(i, s) for i in meeting.old for s in graph.slots_of(i) if graph.slot_freed_by[s] == meeting.earlier.n]
    if before is None:
        return sum(graph.slot_bytes[slot] for _, slot in freed)
    # Several nodes may have saved one tensor: `y` in `y = x.exp(); y * y`.
    uids = {graph.uid[index] for index, _ in freed}
    return bytes_held(before, (index for uid in uids if (index := before.index_of.get(uid)) is not None))


_SUM_COSTS_NOTHING = "Same gradients, one pass, nothing retained."


class Candidates:
    """Fixes for one meeting. Each method makes one candidate, simulated; None where it makes no sense."""

    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting
        self.later = meeting.later
        self.earlier = meeting.earlier
        self.cuts = Cuts(meeting)

    # simulations

    def _kept_is_stale(self) -> bool:
        """Whether something that the earlier call freed, and the later one needs, has been modified in place since."""
        graph = self.meeting.graph
        written = {key for write in self.meeting.writes_between for key in write.storages}
        before = self.earlier.graph or graph
        needed = {graph.uid[index] for index in self.meeting.reached}
        for uid in self.earlier.executed:
            index = before.index_of.get(uid) if uid in needed else None
            for slot in before.slots_of(index) if index is not None else ():
                storage = before.slot_storage[slot]
                if storage >= 0 and before.storages.key[storage] in written:
                    return True
        return bool(self.meeting.steps_between and not self.earlier.graph)

    def works_if_kept(self) -> bool:
        """As if the earlier call had retained."""
        return not self._kept_is_stale() and self._held_works

    def works_if_fresh(self) -> bool:
        """As if the old part had been built anew."""
        if not anything_stale(self.meeting.graph):
            return self._held_works
        return self._fresh_works

    @cached_property
    def _held_works(self) -> bool:
        return simulate(with_nodes_held(self.meeting.graph, self.meeting.old), self.later).ok is True

    @cached_property
    def _fresh_works(self) -> bool:
        graph = with_nothing_stale(with_nodes_held(self.meeting.graph, self.meeting.old))
        return simulate(graph, self.later).ok is True

    def _works_if(self, made: Cut) -> bool:
        graph = cut(self.meeting.graph, made.edges)
        if not made.sure or simulate(graph, self.later).ok is not True or not self._inputs_stay(graph):
            return False
        left = reachable(graph, self.meeting.root_indices)
        wanted = {ref.node for ref in self.later.inputs} if self.later.inputs else set(graph.leaves)
        return bool(left & wanted)

    def _inputs_stay(self, graph: Snapshot) -> bool:
        """Whether all of which a gradient was asked for since the earlier call would still require grad."""
        leaves = set(graph.leaves)
        for call in self.meeting.record.calls:
            if self.earlier.n < call.n <= self.later.n and call.graph is not None:
                uids = (call.graph.uid[ref.node] for ref in call.inputs or () if ref.node >= 0)
                found = (index for uid in uids if (index := graph.index_of.get(uid)) is not None)
                if any(leaves.isdisjoint(reachable(graph, [index])) for index in found):
                    return False
        return True

    def _works_if_earlier(self, made: Cut) -> bool:
        """As if the earlier call had freed only what it would still have reached."""
        graph, before = self.meeting.graph, self.earlier.graph
        if before is None:
            return False
        still = reachable(cut(before, made.before), (root.node for root in self.earlier.roots))
        freed = {before.uid[index] for index in still}
        spared = [index for index in self.meeting.old if graph.uid[index] not in freed]
        return simulate(with_nodes_held(graph, spared), self.later).ok is True

    # candidates

    def retain(self) -> Fix:
        price = f"{bytes_text(kept_bytes(self.meeting))} of saved tensors stay until the graph goes."
        if self.meeting.in_loop:
            price += " The last iteration need not retain."
        if self.meeting.grad_used:
            price += " The gradient that the loss uses is a constant then: nothing learns from it."
        by_hand = self.earlier.place.button
        how = "choose `retain_graph=True` with that button" if by_hand else "pass `retain_graph=True` there"
        return Fix(
            "retain_graph_earlier_call",
            f"Keep what {self._call(self.earlier)} frees: {how}.",
            self.works_if_kept() and not self._met_again_in_the_next_pass and not self._never_ends,
            at(self.earlier.place),
            price,
            self._with_keyword("retain_graph=True"),
            by_hand,
        )

    def retain_despite_steps(self) -> Fix | None:
        """Where the optimizers have modified nothing that the later call needs: each steps a head of its own."""
        fix = self.retain() if self.meeting.steps_between else None
        return fix if fix is not None and fix.verified else None

    @property
    def _met_again_in_the_next_pass(self) -> bool:
        """Whether two calls of one loop use what no pass makes anew: what the later one frees, the next pass needs."""
        a, b, run = self.earlier.place, self.later.place, self.meeting.run_of(self.later.place)
        if run is None or a.run != b.run or b.outer_line is None or a.outer_line in (None, b.outer_line):
            return False
        loop = source.loop_at(run.source, b.outer_line)
        if loop is None or not loop.lineno <= (a.outer_line or 0) <= (loop.end_lineno or 0):
            return False
        meeting, anew = self.meeting, source.changed(loop) - source.grown(loop)
        met = [one for one in Crossings(meeting, meeting.graph, meeting.new).all if one.tensor in meeting.boundary]
        return any(name.isidentifier() or "[" in name for one in met for name in one.names) and not any(
            detaching.root_of(name) in anew for one in met for name in one.names
        )

    @cached_property
    def _never_ends(self) -> bool:
        """Whether a `while` around both calls asks for what no pass makes anew: without the error it would go on."""
        place = self.later.place
        loop = source.loop_at(self.meeting.text_of_cell(place.outer_cell), place.outer_line or 0)
        if not self.meeting.in_loop or not isinstance(loop, ast.While):
            return False
        asked, moved = source.names_in(loop.test), source.changed(loop) | made_once.taken_from(loop)
        return bool(asked & {detaching.root_of(name) for name in self.meeting.names}) and not asked & moved

    def create_graph(self) -> Fix:
        return Fix(
            "create_graph",
            f"The loss uses this gradient: pass `create_graph=True` in {self._call(self.earlier)}.",
            self.works_if_kept(),
            at(self.earlier.place),
            "It keeps the graph, and builds one for the gradient.",
            self._with_keyword("create_graph=True"),
        )

    def recompute(self) -> Fix | None:
        plan: Rerun | None = rerun(self.meeting)
        if plan is None:
            return None
        return Fix(
            "recompute_in_loop",
            plan.sentence,
            self.works_if_fresh(),
            plan.at,
            "One more forward pass of that part.",
            plan.edit,
        )

    def detach(self) -> Fix | None:
        if not self.meeting.brings_leaves:
            return None  # nothing would be left to reach
        cells = fitting.cells_of(self.meeting.record)
        cuts = [c for c in self.cuts.for_later() if c.at is None or not c.edit or fitting.fits(cells, c.at, c.edit)]
        if not cuts:
            return None
        working = next((one for one in cuts if self._works_if(one)), None)
        made = working or cuts[0]
        price = self.cuts.price(made)
        if self.meeting.only_added:
            price = (
                f"`{Carrier(self.meeting).name}` is only added to the loss: detached, it has no effect on any gradient."
            )
        works = working is not None and not self._never_ends
        return Fix("detach", made.sentence, works, made.at, price, made.edit, starves=self._starved())

    def _starved(self) -> tuple[str, ...]:
        """Trained leaves that get no gradient from the later call once the old part is cut off, or none from a term of
        the loss, which is a constant then.

        In a pass that carries a state over, a leaf behind the state alone was reached when the state began.
        """
        meeting = self.meeting
        if meeting.only_added:
            inside = reachable(meeting.graph, meeting.boundary)
            return meeting.leaf_names(index for index in inside if index in meeting.graph.leaves)
        return () if meeting.carried_state else meeting.leaf_names(meeting.starved)

    def cut_elsewhere(self) -> Fix | None:
        """The same in words: no line is known that runs between the two calls and sees the carrier."""
        meeting = self.meeting
        if not meeting.brings_leaves:
            return None
        carrier = Carrier(meeting)
        what = f"`{carrier.name}`" if carrier.path is not None else "what one pass hands to the next"
        a, b = self.earlier.place, self.later.place
        one_line = (a.run, a.outer_line, a.iteration) == (b.run, b.outer_line, b.iteration)  # whose code has the loop
        line = b.outer_source or b.source
        inside = f" in the code that {short(line)} calls" if line and one_line else ""
        text = f"Cut the graph between passes: detach {what} after each backward{inside}, before the next pass uses it."
        return Fix("detach", text, False, None, starves=self._starved())

    def compute_again(self) -> Fix | None:
        """To build the old part anew, in words: where that can be done is not known."""
        carrier = self.meeting.root_name if self.meeting.same_root else Carrier(self.meeting).name
        text = f"Compute `{carrier}` in each pass, so that each has a graph of its own."
        if not self.meeting.repeated:
            after, later = self._call(self.earlier), self._call(self.later)
            text = f"Compute `{carrier}` again after {after}, so that {later} has a graph of its own."
        return Fix("recompute_in_loop", text, False, None, "One more forward pass of that part.")

    def detach_in_earlier(self) -> Fix | None:
        made = self.cuts.for_earlier()
        lost = self.meeting.leaf_names(self.meeting.exclusive_leaves)
        price = f"Then {no_gradient(lost, 'from ' + self._call(self.earlier))}" if lost else ""
        return Fix("detach", made.sentence, self._works_if_earlier(made), made.at, price, made.edit) if made else None

    def sum_of_losses(self) -> Fix | None:
        if not self.earlier.api == self.later.api == "backward":
            return None
        whole, edit, line = self._summed()
        works = self.works_if_fresh() and (bool(edit) or not self.meeting.built_after)
        by_hand = not edit and (self.earlier.place.button or self.later.place.button)
        return Fix(
            "single_backward_sum",
            f"Run backward once: `{whole}.backward()`{', after the cells that make both' if by_hand else ''}.",
            works,
            line,
            "One pass, and one step for all." if self.meeting.steps_between else _SUM_COSTS_NOTHING,
            edit,
            by_hand,
        )

    def sum_in_loop(self) -> Fix | None:
        """The same where it can be told from the loop that it only runs what was made before."""
        fix = self.sum_of_losses() if self.meeting.in_loop else None
        return fix if fix is not None and fix.edit else None

    def rerun_cell(self) -> Fix | None:
        meeting = self.meeting
        made = meeting.graph.place_of(meeting.root_indices[0]) if meeting.root_indices else None
        made = made if meeting.same_root else meeting.carrier_place
        cell = f"In[{made.outer_cell or made.cell}]" if made is not None and made.cell is not None else "its cell"
        again = made is not None and made.cell_id is not None and made.cell_id == self.later.place.cell_id
        what = meeting.root_name if meeting.same_root else Carrier(meeting).name
        if re.match(r"_\d+\b|Out\[", what):
            return None  # what a cell displayed goes by the number of that run
        return Fix(
            "rerun_forward_cell",
            f"Run {cell} again before this one: it computes `{what}` anew.",
            self.works_if_fresh() and not again and (meeting.same_root or meeting.one_cell_builds_the_rest),
            outer_at(made),
            "One more forward pass.",
            by_hand=True,
        )

    def remove_duplicate(self) -> Fix | None:
        if not self.meeting.same_call:
            return None
        place, call = self.later.place, self._call(self.later)
        line = self._statement(place)
        edit: edits.Edit = ()
        here = source.beginning_at(self.meeting.text_of_cell(place.cell), place.line) if place.line else []
        if len(here) > 1:
            own = [s for s in here if source.backward_root(ast.unparse(s)) == root_name(self.later)]
            if own:
                rest = "; ".join(ast.unparse(s) for s in here if s is not own[-1])
                line, edit = ast.unparse(own[-1]), edits.replaced(line, rest)
        elif line and at(place) == at(self.earlier.place):
            return None  # without the line, the first call would not run either
        elif line and "\n" not in line:
            edit = (f"- {line}",)
        what = f"{short(line)} ({call})" if line else call  # a button's call has no line
        return Fix(
            "remove_duplicate_call",
            f"Leave out {number(self.later.n)}: {number(self.earlier.n)} has run this backward."
            if place.button
            else f"Remove {what}: {self._call(self.earlier)} has run this backward.",
            True,
            at(place),
            "Nothing is lost: `.grad` has been filled by the first call.",
            edit,
            place.button,
        )

    @property
    def can_clear(self) -> bool:
        """Whether the container is filled again before it is read, once it is empty."""
        buffer, plan = self.meeting.buffer, self._filling_again
        return buffer is not None and refilled(self.meeting, detaching.local(buffer), plan.edit if plan else ())

    @cached_property
    def _filling_again(self) -> Rerun | None:
        return rerun(self.meeting) if not self.meeting.in_loop else None

    def clear(self) -> Fix:
        buffer = detaching.local(self.meeting.buffer or Carrier(self.meeting).name)
        works, price = self.works_if_fresh(), "What it holds is used once."
        plan = self._filling_again
        if plan is not None and plan.at is not None:
            here = f"In[{plan.at[0]}], line {plan.at[1]}"
            text = f"Empty `{buffer}` before {here} and fill it again. {plan.sentence}"
            return Fix("clear_buffer", text, works, plan.at, price, (f"+ {buffer}.clear()", *plan.edit))
        place = after_call(self.meeting, self.earlier, self.later.carriers[:1])
        cell = self.meeting.text_of_cell(place[0]) if place is not None else ""
        edit = edits.after(cell, place[1], [f"{buffer}.clear()"]) if place is not None else ()
        text = f"Empty `{buffer}` after {self._call(self.earlier)}: `{buffer}.clear()`."
        return Fix("clear_buffer", text, works, place, price, edit)

    # words and edits

    def _statement(self, place: Place) -> str:
        return self.meeting.text_of(place)

    def _with_keyword(self, keyword: str) -> edits.Edit:
        """The earlier call with one more keyword; written on one line where it was written over several."""
        place = self.earlier.place
        cell = self.meeting.text_of_cell(place.cell)
        found = source.statements_at(cell, place.line) if place.line is not None else []
        if found and not hasattr(found[-1], "body") and found[-1].lineno != found[-1].end_lineno:
            edit = edits.with_keyword(ast.unparse(found[-1]), keyword)
            return (*(f"- {line}" for line in edits.statement_text(cell, found[-1])), *edit[1:]) if edit else ()
        return edits.with_keyword(self._statement(place), keyword, root_name(self.earlier))

    def _call(self, call: BackwardCall) -> str:
        return where(call.place) or (f"`{root_name(call)}.backward()`" if call.place.button else f"call {call.n + 1}")

    def _summed(self) -> tuple[str, edits.Edit, tuple[int, int] | None]:
        if self.meeting.one_comprehension or self.meeting.in_loop:
            return self._summed_in_loop(self._statement(self.earlier.place), root_name(self.earlier))
        one, two = self._plain_call(self.earlier), self._plain_call(self.later)
        if one is None or two is None:
            return f"({root_name(self.earlier)} + {root_name(self.later)})", (), at(self.earlier.place)
        whole = f"({source.backward_root(ast.unparse(one))} + {source.backward_root(ast.unparse(two))})"
        return whole, self._joined(one, two, f"{whole}.backward()"), at(self.earlier.place)

    def _joined(self, one: ast.stmt, two: ast.stmt, new: str) -> edits.Edit:
        """`new` in place of two statements, which may stand on one line."""
        cells = [self.meeting.text_of_cell(call.place.cell) for call in (self.earlier, self.later)]
        if cells[0] == cells[1] and one.lineno == two.lineno:
            rest = [s for s in source.beginning_at(cells[0], one.lineno) if s is not two]
            texts = (new if s is one else ast.unparse(s) for s in rest)
            return edits.replaced(source.line_text(cells[0], one.lineno), "; ".join(texts))
        lines = [line for cell, s in zip(cells, (one, two)) for line in edits.statement_text(cell, s)]
        return (*(f"- {line}" for line in lines), f"+ {new}")

    def _plain_call(self, call: BackwardCall) -> ast.stmt | None:
        """The statement that is a call of backward without anything else."""
        cell, line = self.meeting.text_of_cell(call.place.cell), call.place.line
        found = source.statements_at(cell, line)[-1:] if line is not None else []
        here = source.beginning_at(cell, found[0].lineno) if found else []
        roots = {source.backward_root(ast.unparse(s)): s for s in reversed(here)}
        roots.pop(None, None)
        return roots.get(root_name(call), next(iter(roots.values()), None) if len(here) == 1 else None)

    def _summed_in_loop(self, line: str, first: str) -> tuple[str, edits.Edit, tuple[int, int] | None]:
        """``for l in losses: l.backward()`` or the comprehension, as ``sum(losses).backward()``."""
        place = self.later.place
        cell = self.meeting.text_of_cell(place.cell)
        if self.meeting.one_comprehension:
            whole = f"sum({first.split('[', 1)[0]})" if "[" in first else "total"
            return whole, edits.replaced(line, f"{whole}.backward()") if "[" in first else (), at(place)
        loop = source.loop_at(cell, place.line) if place.line is not None else None
        summed = source.summed(loop, place.line or 0) if isinstance(loop, ast.For) else None
        if loop is None or summed is None or place.cell is None:
            return "total", (), at(place)
        whole, new = summed
        old = edits.statement_text(cell, loop)
        return whole, (*(f"- {one}" for one in old), *(f"+ {one}" for one in new)), (place.cell, loop.lineno)


def for_second_backward(meeting: Meeting) -> tuple[Fix, ...]:
    """Candidates, in the order of preference of their kind; those that take a gradient behind those that do not."""
    make = Candidates(meeting)
    order = _same_root_order(meeting, make) if meeting.same_root else _shared_part_order(meeting, make)
    fixes = [fix for candidate in order if (fix := candidate()) is not None]
    if not any(fix.verified for fix in fixes) and not (meeting.carried_state or meeting.made_on_the_way):
        fixes += filter(None, [make.retain_despite_steps()])
    if not any(fix.verified and not fix.starves for fix in fixes):
        carried = meeting.carried_state or (meeting.made_on_the_way and not meeting.starved)
        fixes += filter(None, [(make.cut_elsewhere if carried else make.compute_again)()])
    return tuple(sorted(fixes, key=lambda fix: (bool(fix.starves), bool(fix.starves) and not fix.verified)))


def _same_root_order(meeting: Meeting, make: Candidates) -> Iterator[Callable[[], Fix | None]]:
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
        if not meeting.in_loop and not meeting.called_by_callee:
            yield make.remove_duplicate
        return
    yield make.retain
    yield make.recompute
    if meeting.earlier.place.run == meeting.later.place.run:
        yield make.remove_duplicate


def _shared_part_order(meeting: Meeting, make: Candidates) -> Iterator[Callable[[], Fix | None]]:
    """The later call brought a part of its own and met the old one."""
    stepped = bool(meeting.steps_between)
    if not meeting.built_after:
        yield from _losses_built_before(meeting, make)
    elif meeting.grad_used:
        yield make.create_graph
        yield make.retain
    elif meeting.buffer and meeting.exclusive_leaves and make.can_clear:
        yield make.clear
    elif stepped and meeting.only_added:
        yield make.recompute  # cut off, it would no longer count
        yield make.detach
    elif meeting.carried_state:
        yield make.detach
        if not meeting.made_on_the_way:
            yield make.recompute
    elif not meeting.starved and (stepped or meeting.made_on_the_way):
        anew_first = (
            meeting.made_on_the_way or meeting.exclusive_leaves
        )  # a cache; what a cut would take a gradient from
        yield make.recompute if anew_first else make.detach
        yield make.detach if anew_first else make.recompute
    elif stepped and not _stepped_behind(meeting) and not meeting.repeated:
        yield make.detach_in_earlier
        yield make.recompute
    elif meeting.repeated and (stepped or meeting.brings_leaves):
        yield make.recompute
        if not stepped:
            yield make.sum_in_loop
            yield make.retain
        yield make.detach
    else:
        if meeting.same_cell_again:
            yield make.rerun_cell
        if not stepped:
            yield make.retain
            yield make.sum_in_loop
        yield make.recompute
        yield make.detach


def _losses_built_before(meeting: Meeting, make: Candidates) -> Iterator[Callable[[], Fix | None]]:
    """Both losses existed when the first call began: they share a part on purpose, or by oversight."""
    if meeting.steps_between:
        yield make.detach
        yield make.recompute
        yield make.sum_in_loop
        return
    yield make.sum_of_losses
    yield make.retain
    yield make.detach


def _stepped_behind(meeting: Meeting) -> bool:
    """Whether a step in between modified a leaf that only the old part reaches."""
    leaves = map(meeting.graph.leaves.get, meeting.exclusive_leaves)
    behind = {path for leaf in leaves if leaf is not None for path in leaf.paths}
    return bool(behind & meeting.stepped_leaves)
