"""Gradients of one loss that are left where another loss of the next pass adds to them, and are stepped with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.steps.kept_grads import changes_grads, owner_of
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, names, short, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, Record, Write

__all__ = ["find"]

ENOUGH = 2  # passes that show it
MOST_NAMED = 3


class _LeftOver(NamedTuple):
    """`giving` gave `leaves` gradients, nothing cleared them before `adding` of the next pass, and `step` used both."""

    giving: BackwardCall
    adding: BackwardCall
    step: Write
    leaves: tuple[str, ...]


def find(record: Record) -> Iterator[Finding]:
    """Yield a finding for each line of a backward that adds to what another line has left, in several passes."""
    if changes_grads(record):
        return
    found: dict[tuple[int, int] | None, list[_LeftOver]] = {}
    for one in _left_overs(record):
        found.setdefault(at(one.adding.place), []).append(one)
    for spot, passes in found.items():
        if spot is not None and len(passes) >= ENOUGH:
            yield _of(record, passes[0])


def _left_overs(record: Record) -> Iterator[_LeftOver]:
    calls = [call for call in record.calls if call.api == "backward" and call.result == "ok"]
    before: dict[str, BackwardCall] = {}  # leaf -> the last call that gave it a gradient
    for call in calls:
        given = _with_gradients(record, call)
        giving = next((before[leaf] for leaf in sorted(given) if leaf in before), None)
        if giving is not None:
            leaves = tuple(leaf for leaf in map(local, call.reached) if before.get(leaf) is giving and leaf in given)
            by_turns = _is_of_the_pass_before(giving, call) and _in_each_pass(calls, giving, call)
            step = _step_with_both(record, giving, call, leaves)
            if step is not None and (by_turns or _is_each_for_its_own(record, calls, giving, call)):
                yield _LeftOver(giving, call, step, leaves)
        before.update({local(path): call for path in call.reached})


def _with_gradients(record: Record, call: BackwardCall) -> set[str]:
    """The leaves that had a gradient before a call that reached them: as seen before it, or as it added to one."""
    graph = call.graph
    if graph is None:
        added = (one for one in record.writes if one.after_calls == call.n + 1 and at(one.place) == at(call.place))
        paths = {local(path) for one in added if not one.optimizer for path in one.paths}
        return {leaf for leaf in map(local, call.reached) if f"{leaf}.grad" in paths}
    leaves = graph.leaves.items() if graph is not None else ()
    had = {
        local(path)
        for index, leaf in leaves
        if leaf.has_grad and graph is not None and graph.uid[index] in call.reached_uids
        for path in leaf.paths
    }
    return had & set(map(local, call.reached))


def _is_of_the_pass_before(giving: BackwardCall, adding: BackwardCall) -> bool:
    """Whether two calls stand on different lines of one loop, the first in the pass before that of the second."""
    one, other = giving.place, adding.place
    follows = one.iteration is not None and other.iteration == one.iteration + 1
    return follows and one.run == other.run and at(one) != at(other) and giving.thread == adding.thread


def _in_each_pass(calls: list[BackwardCall], giving: BackwardCall, adding: BackwardCall) -> bool:
    """Whether the line of the second call also ran in the pass of the first one, before it.

    Where passes alternate between two losses, a step by both may be meant.
    """
    return any(
        one.n < giving.n
        and at(one.place) == at(adding.place)
        and (one.place.run, one.place.iteration) == (giving.place.run, giving.place.iteration)
        for one in calls
    )


def _is_each_for_its_own(record: Record, calls: list[BackwardCall], giving: BackwardCall, adding: BackwardCall) -> bool:
    """Whether two calls are of a loop over optimizers: one line calls, and one line steps after each of its calls."""
    of_line = [call for call in calls if at(call.place) == at(adding.place) and call.thread == adding.thread]
    behind = {write.after_calls: at(write.place) for write in record.writes if write.optimizer}
    steps = {behind.get(call.n + 1) for call in of_line}
    return (
        giving in of_line
        and of_line.index(adding) == of_line.index(giving) + 1
        and len(steps - {None}) == len(steps) == 1
    )


def _step_with_both(
    record: Record, giving: BackwardCall, adding: BackwardCall, leaves: tuple[str, ...]
) -> Write | None:
    """The step behind both calls, if another optimizer has made one in between, with what the first call was for."""
    steps = [(write, set(map(local, write.paths))) for write in record.writes if write.optimizer]
    steps = [(write, held) for write, held in steps if not any(".state" in path for path in held)]
    between = [held for write, held in steps if giving.n < write.after_calls <= adding.n]
    if not leaves or not between or any(held.intersection(leaves) for held in between):
        return None
    behind = [write for write, held in steps if write.after_calls == adding.n + 1 and held.intersection(leaves)]
    return behind[0] if behind else None


def _of(record: Record, one: _LeftOver) -> Finding:
    giving, adding, step = one.giving.place, one.adding.place, one.step
    owner = owner_of(step.place.source)
    whose = f"`{owner}`" if owner else "An optimizer"
    shown = tuple(spoken(leaf) for leaf in one.leaves)
    spot = at(adding)
    edits: text_edit.Edits = ()
    if owner and spot is not None:
        edits = text_edit.insert_before(spot[0], Cells.of(record).text(spot[0]), spot[1], [f"{owner}.zero_grad()"])
    return Finding(
        "silent",
        "warning",
        f"{short(giving.source)} ({where(giving)}) also gives gradients to {names(shown, MOST_NAMED)}, and nothing "
        f"clears them before {short(adding.source)} ({where(adding)}) of the next pass adds to them. So "
        f"{short(step.by)} ({where(step.place)}) goes by the sum of both.",
        f"{whose} goes by gradients that another loss has left, too.",
        one.adding.n,
        tensor=shown[0],
        made_at=step.place,
        cause=giving,
        names=tuple(filter(None, (*shown, owner, "zero_grad"))),
        fixes=(
            Fix(
                "clear_gradients",
                f"Clear them before that call: `{owner or 'optimizer'}.zero_grad()` in front of {short(adding.source)} "
                f"({where(adding)}).",
                False,
                spot,
                "Each step goes by its own loss.",
                edits=edits,
            ),
        ),
    )
