"""A gradient of a gradient that does not exist: the first one does not depend on the input that is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphwidget.diagnosis.findings.refusals.unused_inputs.below import below, node_then
from graphwidget.diagnosis.no_graph.gradients.kept_by_forward import kept_by_forward
from graphwidget.diagnosis.no_graph.way_forward import cuts_behind
from graphwidget.diagnosis.wording import at, lines_of, names, own_path, short, where
from graphwidget.model import BackwardCall, Fix, Kind, Place, Record, Snapshot, TensorRef

__all__ = ["linear_in"]

_MOST_NAMED = 4  # operations


def linear_in(
    record: Record, call: BackwardCall, asked: TensorRef | None, root: str, shown: str
) -> tuple[str, Place | None, tuple[Fix, ...]] | None:
    """Why a root that is itself a gradient does not depend on an input, the line that asked for it, and advice.

    None: it is none, or what was differentiated to make it did not lead to the input either.
    """
    made = _made_by(record, call)
    if made is None or made.graph is None or asked is None:
        return None
    index = node_then(record, made, call, asked)
    if index is None or index not in below(made.graph, made) or _is_cut(record, made, made.graph, asked):
        return None
    place = _asking_line(made, call)
    leading = _leading(made.graph, made, index)
    used = names(tuple(_operations(made.graph, leading - {index})), _MOST_NAMED)
    start = (
        f"No path leads from `{root}` to {shown}. `{root}` comes from a gradient itself: {short(place.source)} "
        f"({where(place)}) asked for it with `create_graph=True`. What that was taken of leads to {shown}, by way of "
        f"{used} only."
    )
    kept = kept_by_forward(record, made.graph, leading, leading)
    if kept is not None:
        return f"{start} {kept.text}", kept.place, (kept.fix,)
    own = tuple(
        re.sub(r"Backward\d*$", "", made.graph.name_of(one)) for one in leading if made.graph.kind[one] == Kind.CUSTOM
    )
    if own:
        return f"{start} {_of_own_functions(own, shown)}", place, (_recorded(own, at(place)),)
    itself = any(ref.node == index for ref in made.inputs or ())
    what = f"what it was taken of is linear in {shown}" if itself else f"{shown} is only added to the rest"
    other = f"something that is not linear in {shown}, such as a nonlinear activation"
    mixed = f"something in which {shown} and what the first gradient is asked for occur together"
    advice = (
        f"For a derivative that is not zero, compute what is differentiated with {other if itself else mixed}. Where "
        "zero is right, the program needs no call for it."
    )
    text = (
        f"{start} The gradient does not lead there: as far as the graph shows, {what}, so this derivative is zero "
        f"wherever one takes it, and nothing is recorded for it."
    )
    return text, place, (Fix("use_input", advice, False, at(place)),)


def _is_cut(record: Record, made: BackwardCall, graph: Snapshot, asked: TensorRef) -> bool:
    """Whether a line that computed what was differentiated cuts off values of the input: then that may be the cause."""
    path = own_path(asked) if asked.is_leaf else None
    lines = {spot for index in below(graph, made) for spot in lines_of(graph.place_of(index))}
    return path is not None and any((cut.run.cell, cut.statement.lineno) in lines for cut in cuts_behind(record, path))


def _made_by(record: Record, call: BackwardCall) -> BackwardCall | None:
    """The earlier call whose gradient a root is, or was computed from step by step; None: there is none such."""
    graph = call.graph
    if graph is None or len(call.roots) != 1 or call.roots[0].node < 0:
        return None
    node = call.roots[0].node
    for earlier in reversed(record.calls):
        if earlier.n >= call.n or not earlier.create_graph or earlier.api != "autograd.grad" or earlier.result != "ok":
            continue
        while graph.seq[node] >= earlier.newest_seq and not _is_at(graph.place_of(node), earlier.place):
            following = graph.next(node)
            if len(following) != 1:  # it was computed from several values
                break
            node = following[0]
        if graph.seq[node] >= earlier.newest_seq and _is_at(graph.place_of(node), earlier.place):
            return earlier
    return None


def _is_at(place: Place | None, other: Place) -> bool:
    return place is not None and place == other and place.stack == other.stack


def _asking_line(made: BackwardCall, call: BackwardCall) -> Place:
    """The innermost line that ran for the first gradient and not for the second: behind a helper that asks for both."""
    running = {at(one) for one in (*call.place.stack, call.place)}
    own = [one for one in (made.place, *reversed(made.place.stack)) if at(one) not in running]
    return own[0] if own else made.place


def _leading(graph: Snapshot, call: BackwardCall, wanted: int) -> set[int]:
    """The nodes on the paths from the roots of a call to a node, and that one."""
    leading = {wanted}
    reached = below(graph, call)
    users: dict[int, list[int]] = {}
    for index in reached:
        for following in graph.next(index):
            users.setdefault(following, []).append(index)
    queue = [wanted]
    for index in queue:
        for user in users.get(index, ()):
            if user not in leading:
                leading.add(user)
                queue.append(user)
    return leading


def _operations(graph: Snapshot, nodes: Iterable[int]) -> list[str]:
    found = (re.sub(r"Backward\d*$", "", graph.name_of(index)) for index in sorted(nodes))
    return [f"{one[:1].lower()}{one[1:]}" for one in dict.fromkeys(found)]


def _of_own_functions(own: tuple[str, ...], shown: str) -> str:
    """What can be said where a Function of the program's own is on the way: its text does not show what is cut."""
    found = tuple(dict.fromkeys(own))
    which = names(tuple(f"{one}.backward" for one in found))
    return (
        f"What {which} {'gives' if len(found) == 1 else 'give'} does not lead there: either that is linear in "
        f"{shown} piece by piece, and this derivative is zero, or the backward computes with values that have no "
        "graph: what `forward` has computed and kept on `ctx` has none."
    )


def _recorded(own: tuple[str, ...], spot: tuple[int, int] | None) -> Fix:
    which = names(tuple(dict.fromkeys(own)))
    advice = (
        f"Where zero is right, the program needs no call for it. Else let the backward of {which} compute with the "
        "inputs, saved by `ctx.save_for_backward`: what it computes from these is recorded."
    )
    return Fix("differentiable_backward", advice, False, spot)
