"""Gradients that add up from step to step because nothing clears them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.not_called import is_named_only
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, KeptGradients, Place, Record

__all__ = ["call_before", "changes_grads", "find", "is_never_cleared", "owner_of"]

# Text that changes a `.grad` in place: then the same tensor may hold another gradient.
_CHANGES_GRADS = re.compile(
    r"set_to_none\s*=\s*False|\bgrad(?:\.data)?\.(?:zero|fill|copy|mul|div|detach|sub|lerp)_\(|"
    r"\bgrad(?:\.data)?(?:\[[^\]]*\])?\s*[*/]=|(?:\.grad|\bgrad(?:\.data|\[[^\]]*\]))\s*=(?!=)|_foreach_(?:zero|mul)_"
)
_CLEARS = re.compile(r"zero_?\(|zeros_like")


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each optimizer whose gradients are not cleared from step to step."""
    for kept in record.kept_grads:
        call = call_before(record, kept)
        if is_named_only(record, owner_of(kept.place.source) or "", "zero_grad"):
            continue
        if not kept.by_hand and call is not None and is_never_cleared(record, kept) and not _may_be_meant(record, kept):
            yield _of(record, kept, call)


def is_never_cleared(record: Record, kept: KeptGradients) -> bool:
    """Whether neither what was seen nor the text has anything that clears a gradient, or makes it smaller."""
    texts = [run.source for run in record.runs.values()]
    if not where(kept.place) or changes_grads(record):
        return False
    clipped = any("clip_grad" in text for text in texts)  # which writes to each gradient once
    return kept.steps > 1 and kept.surplus <= clipped and not (kept.surplus and any(map(_CLEARS.search, texts)))


def _may_be_meant(record: Record, kept: KeptGradients) -> bool:
    """Whether one clearing may be for several steps on purpose: each is another line, as of two losses in a row."""
    if kept.steps > 3 + 2 * kept.cleared:
        return False
    steps = [write.place for write in record.writes if write.optimizer and kept.path in write.paths]
    return bool(kept.cleared) and len({tuple(map(at, (*one.stack, one))) for one in steps}) != 1


def changes_grads(record: Record) -> bool:
    """Whether the text changes a `.grad` in place."""
    return any(_CHANGES_GRADS.search(run.source) for run in record.runs.values())


def call_before(record: Record, kept: KeptGradients) -> BackwardCall | None:
    """The last backward before the step that was looked at."""
    before = (call for call in record.calls if call.n < kept.after_calls)
    calls = [call for call in before if call.result == "ok" and call.api == "backward"]
    return calls[-1] if calls else None


def _of(record: Record, kept: KeptGradients, call: BackwardCall) -> Finding:
    owner = owner_of(kept.place.source)
    shown = f"`{spoken(kept.path)}.grad`" if kept.path else "The gradient of a parameter"
    whose = f"`{owner}`" if owner else "its optimizer"
    often = f"at {kept.steps} steps ({where(kept.place)}), and nothing has cleared it."
    passes = "of all passes so far"
    if kept.cleared:
        cases = f"{kept.steps - 1} of {kept.steps - 1 + kept.cleared} cases"
        often, passes = f"from one step to the next ({where(kept.place)}) in {cases}.", "of several passes"
    cleared = _clearing(record, kept, owner)
    line = f"{short(call.place.source)} ({where(call.place)}) adds" if where(call.place) else "Each backward adds"
    return Finding(
        "silent",
        "warning",
        f"{shown} was the same tensor {often}{cleared.text} {line} to what is there. So each step of {whose} goes by "
        f"the sum of the gradients {passes}.",
        f"Gradients add up from step to step: nothing clears those of {whose}{' in between' * bool(kept.cleared)}.",
        call.n,
        tensor=spoken(kept.path) or None,
        made_at=kept.place,
        cause=cleared.place or (call.place if where(call.place) else kept.place),
        names=tuple(filter(None, (f"{spoken(kept.path)}.grad" if kept.path else "", owner, "zero_grad"))),
        fixes=(
            Fix(
                "clear_gradients",
                cleared.do,
                False,
                at(kept.place),
                "The steps get smaller: each goes by its own pass.",
                edits=cleared.edits,
            ),
        ),
    )


class _Clearing(NamedTuple):
    """How to clear gradients in each pass, and what is to be said of the line that clears them too early."""

    do: str
    edits: text_edit.Edits
    text: str = ""
    place: Place | None = None


def _clearing(record: Record, kept: KeptGradients, owner: str) -> _Clearing:
    """Move the line that clears gradients before a loop into it; else clear them behind each step."""
    spot, cells = at(kept.place), Cells.of(record)
    text = cells.text(spot[0]) if spot is not None else ""
    there = syntax.beginning_at(text, spot[1]) if spot is not None else []
    statement = next((one for one in there if len(_steps(one)) == 1), None)
    early = _before_the_loop(text, statement) if statement is not None else None
    if spot is not None and early is not None:
        loop, clears = early
        place = replace(kept.place, line=clears.lineno, source=ast.unparse(clears))
        line = f"{short(place.source)} ({where(place)})"
        edits = (
            *text_edit.remove(spot[0], text, clears),
            *text_edit.insert_before(spot[0], text, loop.body[0], [ast.unparse(clears)]),
        )
        said = f" {line} stands before the loop, and clears once for all its passes."
        return _Clearing(f"Clear them in each pass: move {line} to the beginning of the loop.", edits, said, place)
    call = _call_to_clear_before(record, kept, text) if spot is not None and owner else None
    if spot is not None and call is not None:
        before = f"{short(call.place.source)} ({where(call.place)})"
        edits = text_edit.insert_before(spot[0], text, call.place.line or 0, [f"{owner}.zero_grad()"])
        return _Clearing(f"Clear them before each backward: `{owner}.zero_grad()` in front of {before}.", edits)
    do = f"Clear them after each step: `{owner or 'optimizer'}.zero_grad()`."
    if not owner or spot is None or not isinstance(statement, ast.Expr):
        return _Clearing(do, ())
    return _Clearing(do, text_edit.insert_after(spot[0], text, statement, [f"{owner}.zero_grad()"]))


def _call_to_clear_before(record: Record, kept: KeptGradients, text: str) -> BackwardCall | None:
    """The backward in front of which gradients are cleared, where another optimizer's step stands before it.

    The loss of that other step may give gradients to the same parameters: what is cleared behind a step gets them
    again. None where there is no such step, where calls add up on purpose, or where the call is in other code.
    """
    steps = sorted((write for write in record.writes if write.optimizer), key=lambda write: write.after_calls)
    spot = at(kept.place)
    mine = next((write for write in steps if at(write.place) == spot), None)
    others = [write.after_calls for write in steps if mine is not None and write.after_calls < mine.after_calls]
    if spot is None or mine is None or not others:
        return None
    calls = [one for one in record.calls if others[-1] <= one.n < mine.after_calls and one.api == "backward"]
    places = [at(one.place) for one in calls]
    first = calls[0].place if calls and len(set(places)) == len(places) else None
    if first is None or at(first) is None or first.cell != spot[0] or (first.line or 0) >= spot[1]:
        return None
    lines = (first.line or 0, spot[1])
    around = [(syntax.function_at(text, line), syntax.loops_around(text, line)) for line in lines]
    return calls[0] if around[0] == around[1] else None


def _before_the_loop(text: str, step: ast.stmt) -> tuple[ast.For | ast.While, ast.stmt] | None:
    """The innermost loop around a step, and the one line before it, in the same block, that clears gradients."""
    loop = next(reversed(syntax.loops_around(text, step.lineno)), None)
    if loop is None or any(_clears(one) for one in syntax.own_statements(loop.body)):
        return None
    clears = [one for one in syntax.block_of(text, loop) if one.lineno < loop.lineno and _clears(one)]
    return (loop, clears[0]) if len(clears) == 1 else None


def _clears(statement: ast.stmt) -> bool:
    simple = isinstance(statement, ast.Expr)
    return simple and any(name.rsplit(".", 1)[-1] == "zero_grad" for name in syntax.calls_in(statement))


def _steps(tree: ast.AST) -> list[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "step"]


def owner_of(line: str) -> str:
    """The optimizer in the line of a step: ``opt.step()``, ``scaler.step(opt)``; empty: it cannot be read."""
    tree = syntax.parse(line.strip())
    steps = _steps(tree) if tree is not None else []
    if len(steps) != 1:
        return ""
    one = steps[0]
    if one.args:
        return ast.unparse(one.args[0]) if isinstance(one.args[0], (ast.Name, ast.Attribute)) else ""
    return ast.unparse(one.func.value)  # type: ignore[attr-defined]
