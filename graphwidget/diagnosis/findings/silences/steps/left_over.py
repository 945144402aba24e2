"""Gradients of one loss that are left where another loss of the next pass adds to them, and are stepped with it."""

from __future__ import annotations

from collections import defaultdict
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
MANY = 4  # calls of a line that make a loop over optimizers
MOST_NAMED = 3


class _LeftOver(NamedTuple):
    """`giving` gave `leaves` gradients, nothing cleared them before `adding` of the next pass, and `step` used both."""

    giving: BackwardCall
    adding: BackwardCall
    step: Write
    leaves: tuple[str, ...]


def find(record: Record) -> Iterator[Finding]:
    """Yield a finding for each line of a backward that adds to what another loss has left, in several passes."""
    if changes_grads(record):
        return
    found: dict[tuple[int, int], list[_LeftOver]] = {}
    seen = _Seen(record)
    before: dict[str, BackwardCall] = {}  # leaf -> the last call that gave it a gradient
    for call in seen.calls:
        spot = at(call.place)
        passes = found.setdefault(spot, []) if spot is not None else []
        if spot is not None and len(passes) < ENOUGH and (one := _left_over(seen, call, before)) is not None:
            passes.append(one)
        before.update({local(path): call for path in call.reached})
    for passes in found.values():
        if len(passes) >= ENOUGH or any(_is_each_for_its_own(seen, one.giving, one.adding) for one in passes):
            yield _of(record, passes[0])


class _Seen:
    """The backward calls of a program, and what was seen to be written behind each of them."""

    def __init__(self, record: Record) -> None:
        self.calls = [call for call in record.calls if call.api == "backward" and call.result == "ok"]
        self.of_line: dict[object, list[BackwardCall]] = defaultdict(list)
        for call in self.calls:
            self.of_line[at(call.place), call.thread].append(call)
        self.steps: dict[int, list[tuple[Write, set[str]]]] = defaultdict(list)  # by the number of calls before
        self.stepping: dict[int, set[object]] = defaultdict(set)  # the lines of all steps
        self.grads: dict[tuple[int, object], set[str]] = defaultdict(set)  # and by the line
        for write in record.writes:
            paths = set(map(local, write.paths))
            if not write.optimizer:
                self.grads[write.after_calls, at(write.place)] |= paths
                continue
            self.stepping[write.after_calls].add(at(write.place))
            if not any(".state" in path for path in paths):
                self.steps[write.after_calls].append((write, paths))

    def like(self, call: BackwardCall) -> list[BackwardCall]:
        """The calls of the same line."""
        return self.of_line[at(call.place), call.thread]

    def with_gradients(self, call: BackwardCall) -> set[str]:
        """The leaves that had a gradient before a call that reached them: as seen then, or as it added to one."""
        graph, reached = call.graph, set(map(local, call.reached))
        if graph is None:
            added = self.grads.get((call.n + 1, at(call.place)), ())
            return {leaf for leaf in reached if f"{leaf}.grad" in added}
        had = ((index, leaf) for index, leaf in graph.leaves.items() if leaf.has_grad)
        mine = (leaf for index, leaf in had if graph.uid[index] in call.reached_uids)
        return {local(path) for leaf in mine for path in leaf.paths} & reached


def _left_over(seen: _Seen, call: BackwardCall, before: dict[str, BackwardCall]) -> _LeftOver | None:
    """What a call adds to; None: to nothing, or it may be meant to."""
    given = seen.with_gradients(call)
    giving = next((before[leaf] for leaf in sorted(given) if leaf in before), None)
    if giving is None:
        return None
    leaves = tuple(leaf for leaf in map(local, call.reached) if before.get(leaf) is giving and leaf in given)
    step = _step_with_both(seen, giving, call, leaves)
    if step is None:
        return None
    by_turns = _is_of_the_pass_before(giving, call) and _in_each_pass(seen, giving, call)
    return _LeftOver(giving, call, step, leaves) if by_turns or _is_each_for_its_own(seen, giving, call) else None


def _is_of_the_pass_before(giving: BackwardCall, adding: BackwardCall) -> bool:
    """Whether two calls stand on different lines of one loop, the first in the pass before that of the second."""
    one, other = giving.place, adding.place
    follows = one.iteration is not None and other.iteration == one.iteration + 1
    return follows and one.run == other.run and at(one) != at(other) and giving.thread == adding.thread


def _in_each_pass(seen: _Seen, giving: BackwardCall, adding: BackwardCall) -> bool:
    """Whether the line of the second call also ran in the pass of the first one, before it.

    Where passes alternate between two losses, a step by both may be meant.
    """
    own = (giving.place.run, giving.place.iteration)
    return any(one.n < giving.n and (one.place.run, one.place.iteration) == own for one in seen.like(adding))


def _is_each_for_its_own(seen: _Seen, giving: BackwardCall, adding: BackwardCall) -> bool:
    """Whether two calls are of a loop over optimizers: one line calls, and one line steps after each of its calls.

    What is seen in one of its passes is so in the others: most calls of such a line are only counted.
    """
    alike = seen.like(adding)
    following = any(one is giving and other is adding for one, other in zip(alike, alike[1:]))
    steps = [seen.stepping.get(call.n + 1, set()) for call in alike]
    return following and len(alike) >= MANY and len(set().union(*steps)) == 1 and all(steps)


def _step_with_both(seen: _Seen, giving: BackwardCall, adding: BackwardCall, leaves: tuple[str, ...]) -> Write | None:
    """The step behind both calls, if another optimizer has made one in between, with what the first call was for."""
    between = [held for n in range(giving.n + 1, adding.n + 1) for _, held in seen.steps.get(n, ())]
    if not leaves or not between or any(held.intersection(leaves) for held in between):
        return None
    behind = (write for write, held in seen.steps.get(adding.n + 1, ()) if held.intersection(leaves))
    return next(behind, None)


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
