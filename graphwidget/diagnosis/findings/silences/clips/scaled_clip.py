"""Gradients that are clipped while they are still multiplied by the scale of a `GradScaler`.

``scaler.step`` divides them by the scale, if ``scaler.unscale_`` has not done so before. A clip in between cuts
gradients that are some ten thousand times too large:
https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from graphwidget.diagnosis.findings.silences.clips.loop_order import CLIPS
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Record

__all__ = ["find"]

_UNSCALES = "unscale_"
_Spot: TypeAlias = tuple[int, int] | None


class _Clip(NamedTuple):
    """A clip between the backward of a scaled loss and the steps of its scaler, of these optimizers."""

    run: CellRun
    line: ast.stmt
    call: BackwardCall
    scaler: str
    step: ast.stmt
    optimizers: list[str]


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each such clip that ran, where nothing in the program takes the scale off before it."""
    scaled = {at(call.place): call for call in record.calls if _is_scaled(call)}
    if not scaled:
        return
    latest = Cells.of(record).latest
    stepped = {at(write.place) for write in record.writes if write.optimizer}
    for run in latest:
        for line in _clips(run):
            clip = _between(run, line, scaled, stepped)
            if clip is not None and not _is_unscaled(latest, clip):
                yield _of(clip)


def _is_scaled(call: BackwardCall) -> bool:
    """Whether the root was multiplied by a scale: a scaler that is switched off hands the loss on as it is."""
    if call.api != "backward" or call.result != "ok" or call.graph is None or len(call.roots) != 1:
        return False
    root = call.roots[0].node
    if root < 0 or call.graph.name_of(root) != "MulBackward0":
        return False
    made = call.graph.place_of(root)
    return made is not None and ".scale(" in made.source


def _clips(run: CellRun) -> Iterator[ast.stmt]:
    calls = (one for name in CLIPS for one in syntax.calls_by_name(run.source).get(name, ()))
    for line in sorted({one.lineno for one in calls}):
        yield from syntax.statements_at(run.source, line)[-1:]


def _between(run: CellRun, line: ast.stmt, scaled: dict[_Spot, BackwardCall], stepped: set[_Spot]) -> _Clip | None:
    """The clip of a line, if a scaler's step comes behind it in its pass, and a backward before it or elsewhere."""
    if run.cell is None:
        return None
    body = _pass_of(run.source, line.lineno)
    behind = [one for one in body if one.lineno > line.lineno and (run.cell, one.lineno) in stepped]
    steps = [(one, *step) for one in behind for step in _scaled_steps(one)]
    calls = [one for one in body if any(syntax.last_name(name) == "backward" for name in syntax.calls_in(one))]
    before = [scaled.get((run.cell, one.lineno)) for one in calls if one.lineno < line.lineno]
    call = before[-1] if before else None if calls else next(iter(scaled.values()))
    if call is None or not steps:
        return None
    first, scaler, _ = steps[0]
    return _Clip(run, line, call, scaler, first, list(dict.fromkeys(of for _, by, of in steps if by == scaler)))


def _scaled_steps(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """The scaler and the optimizer of ``scaler.step(optimizer)``."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step":
            if len(node.args) == 1 and isinstance(node.args[0], (ast.Name, ast.Attribute)):
                yield ast.unparse(node.func.value), ast.unparse(node.args[0])


def _pass_of(text: str, line: int) -> list[ast.stmt]:
    """The simple statements of the innermost loop around a line, else of its function, else of the text."""
    loops, function, tree = syntax.loops_around(text, line), syntax.function_at(text, line), syntax.parse(text)
    inside = [one for one in loops if function is None or one.lineno > function[1].lineno]
    around = inside[-1].body if inside else function[1].body if function else tree.body if tree is not None else []
    return [one for one in syntax.own_statements(around) if not syntax.blocks_of(one)]


def _is_unscaled(latest: list[CellRun], clip: _Clip) -> bool:
    """Whether the scale may be off at the clip: a line unscales that does not stand between the clip and the step."""
    for run in latest:
        for call in syntax.calls_by_name(run.source).get(_UNSCALES, ()):
            if run.cell != clip.run.cell or not clip.line.lineno < call.lineno <= clip.step.lineno:
                return True
    return False


def _of(clip: _Clip) -> Finding:
    run, place, step = clip.run, place_of(clip.run, clip.line.lineno), place_of(clip.run, clip.step.lineno)
    unscale = [f"{clip.scaler}.{_UNSCALES}({one})" for one in clip.optimizers]
    edits = text_edit.insert_before(run.cell, run.source, clip.line, unscale) if len(unscale) == 1 else ()
    what = f"`{unscale[0]}`" if len(unscale) == 1 else f"`{clip.scaler}.{_UNSCALES}` with the optimizer that it is for"
    return Finding(
        "silent",
        "warning",
        f"{short(clip.call.place.source)} ({where(clip.call.place)}) computes the gradients of the loss times the "
        f"scale of `{clip.scaler}`. {short(place.source)} ({where(place)}) clips them so, and {short(step.source)} "
        f"({where(step)}) then divides what is left by the scale. So the limit holds for the scaled gradients, and "
        "the steps are smaller by the scale wherever it clips.",
        f"Gradients are clipped while they are still multiplied by the scale of `{clip.scaler}`.",
        clip.call.n,
        made_at=place,
        cause=place,
        names=(*(name for name in CLIPS if name in ast.unparse(clip.line)), clip.scaler, _UNSCALES)[:3],
        fixes=(
            Fix(
                "clip_after_unscale",
                f"Call {what} before the clip ({where(place)}). The step does not divide a second time.",
                False,
                at(place),
                edits=edits,
            ),
        ),
    )
