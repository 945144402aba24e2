"""Gradients that add up inside one step, of an optimizer that evaluates a closure several times (`LBFGS`)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, KeptGradients, Place, Record

__all__ = ["find"]


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each optimizer in whose first step the gradients of several evaluations added up."""
    for kept in record.kept_grads:
        inside = _evaluations(record, kept)
        if inside:
            yield _of(record, kept, inside)


def _evaluations(record: Record, kept: KeptGradients) -> list[BackwardCall]:
    """The backward calls of the first step, if each is another evaluation of the closure, and none cleared anything."""
    step = at(kept.place)
    inside = [
        call
        for call in record.calls
        if call.n < kept.after_calls and call.result == "ok" and step in map(at, call.place.stack)
    ]
    if step is None or kept.added < 2 or len(inside) != kept.added:
        return []
    often = Counter(at(call.place) for call in inside)
    if min(often.values()) < 2 or any(_repeats(record, call.place, step) for call in inside[: len(often)]):
        return []
    return inside


def _repeats(record: Record, place: Place, step: tuple[int, int]) -> bool:
    """Whether code between a step and a call may make the call several times in one evaluation."""
    cells = Cells.of(record)
    frames = [*place.stack, place]
    for frame in frames[[*map(at, frames)].index(step) + 1 :]:
        spot = at(frame)
        text = cells.text(spot[0]) if spot is not None else ""
        own = syntax.function_at(text, spot[1]) if spot is not None else None
        statement = cells.statement(spot) if spot is not None else None
        if spot is None or own is None or statement is None or syntax.runs_in_comprehension(statement):
            return True
        if any(loop.lineno > own[1].lineno for loop in syntax.loops_around(text, spot[1])):
            return True
    return False


def _of(record: Record, kept: KeptGradients, inside: list[BackwardCall]) -> Finding:
    call = inside[0]
    owner = _owner(kept.place.source)
    shown = f"`{spoken(kept.path)}.grad`" if kept.path else "The gradient of a parameter"
    clearing = f"`{owner or 'optimizer'}.zero_grad()`"
    return Finding(
        "silent",
        "warning",
        f"{short(kept.place.source)} ({where(kept.place)}) ran {short(call.place.source)} ({where(call.place)}) "
        f"{len(inside)} times in its first step, and nothing cleared {shown} in between: each evaluation added to what "
        "the ones before it had left. So the optimizer searched with gradients that are not those of its loss.",
        "Gradients add up inside a step: the closure does not clear them.",
        call.n,
        tensor=spoken(kept.path) or None,
        made_at=kept.place,
        cause=call.place,
        names=tuple(filter(None, (f"{spoken(kept.path)}.grad" if kept.path else "", owner, "zero_grad"))),
        fixes=(
            Fix(
                "clear_gradients",
                f"Clear them at the beginning of the closure: {clearing}.",
                False,
                at(call.place),
                "Each evaluation has a gradient of its own.",
                edits=_clearing(record, kept, call, owner),
            ),
        ),
    )


def _clearing(record: Record, kept: KeptGradients, call: BackwardCall, owner: str) -> text_edit.Edits:
    """The clearing as the first line of the closure, where the name of the optimizer is known there."""
    step, cells = at(kept.place), Cells.of(record)
    frames = [*call.place.stack, call.place]
    spot = at(frames[[*map(at, frames)].index(step) + 1])
    if step is None or spot is None or not owner or spot[0] != step[0]:
        return ()
    text = cells.text(spot[0])
    closure, around = syntax.function_at(text, spot[1]), syntax.function_at(text, step[1])
    if closure is None:
        return ()
    of_one_class = around is not None and around[0] is not None and closure[0] is around[0]
    if (
        around is not None
        and closure[1] not in ast.walk(around[1])
        and not (of_one_class and owner.startswith("self."))
    ):
        return ()
    return text_edit.insert_before(spot[0], text, closure[1].body[0], [f"{owner}.zero_grad()"])


def _owner(line: str) -> str:
    """The optimizer in the line of a step with a closure: ``opt.step(closure)``; empty: it cannot be read."""
    tree = syntax.statement_of(line)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    steps = [one for one in calls if isinstance(one, ast.Attribute) and one.attr == "step"]
    return ast.unparse(steps[0].value) if len(steps) == 1 else ""
