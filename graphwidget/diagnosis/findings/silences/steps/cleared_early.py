"""Gradients that the program clears between the backward that gave them and the step that was to use them.

Measured while the program ran once more, so it does not matter how it clears them: by ``zero_grad``, at the end of a
context manager, in a callback or in a hook.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.steps.kept_grads import owner_of
from graphwidget.diagnosis.findings.silences.steps.thrown_away import moved
from graphwidget.diagnosis.no_graph.measured import place_at
from graphwidget.diagnosis.reuse.reuse import call_at
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, names, short, spoken, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, MeasuredEmptied, Place, Record, TextLine

__all__ = ["find", "finding_at"]

MOST_NAMED = 3


class _Lines(NamedTuple):
    """The lines of one function by which the program came to a backward, to what clears, and to the step."""

    run: CellRun
    backward: int
    clearing: int
    step: int


def find(record: Record) -> Iterator[Finding]:
    """Yield a finding for each optimizer that found zeros in all its steps. Where it found nothing, see `idle_step`."""
    idle = {at(one.place) for one in record.idle}
    for one in record.lineage.emptied if record.lineage is not None else ():
        place = place_at(record, one.stepped)
        if place is not None and at(place) not in idle:
            yield from _of(record, one, place)


def finding_at(record: Record, step: Place) -> Finding | None:
    """The finding about a step; None: nothing was measured to have cleared its gradients."""
    for one in record.lineage.emptied if record.lineage is not None else ():
        place = place_at(record, one.stepped)
        if place is not None and at(place) == at(step):
            return next(_of(record, one, place), None)
    return None


def _of(record: Record, one: MeasuredEmptied, step: Place) -> Iterator[Finding]:
    cleared, call = place_at(record, one.cleared), call_at(record.calls, one.call)
    if cleared is None or call is None:
        return
    shown = tuple(dict.fromkeys(spoken(local(path)) for path in one.paths))
    whose = f" of {names(shown, MOST_NAMED)}" if shown else ""
    said = f"`{owner_of(step.source)}.step()`" if owner_of(step.source) else short(step.source)
    often = "its only step" if one.steps == 1 else f"each of its {one.steps} steps"
    what = "only zeros" if one.zeros else "no gradient"
    fix = _fix(record, one, call, cleared, step)
    yield Finding(
        "silent",
        "warning",
        f"{said} ({where(step)}) found {what} in {often}. {short(call.place.source)} ({where(call.place)}) had given "
        f"gradients{whose}, and {short(cleared.source)} ({where(cleared)}) cleared them before the step could use "
        "them.",
        f"{said} changed nothing." if not one.zeros else f"{said} goes by gradients that are cleared before it.",
        call.n,
        tensor=shown[0] if shown else None,
        made_at=step,
        cause=cleared,
        names=tuple(dict.fromkeys(filter(None, (*shown, owner_of(step.source), "zero_grad")))),
        fixes=(fix,),
    )


def _fix(record: Record, one: MeasuredEmptied, call: BackwardCall, cleared: Place, step: Place) -> Fix:
    """Another order of the lines in the function that has all three; else only words."""
    lines = _in_one_function(record, one, call)
    stepping, clearing = (f"{short(place.source)} ({where(place)})" for place in (step, cleared))
    text = f"Clear the gradients behind {stepping}, or before the backward: move {clearing}."
    edits: Edits = ()
    if lines is not None:
        source = lines.run.source
        block = _block_with(source, lines.clearing, lines.backward, lines.step)
        if block is not None:
            text = f"Make the step before {short(syntax.line_text(source, block.lineno).rstrip(':'))} ends"
            text += f" ({where(cleared)} clears then): move {stepping} into that block."
            edits = _into(lines, block)
        elif lines.step < lines.backward:
            text = f"Make the step behind the backward: move {stepping} behind {where(call.place)}."
            edits = _behind_backward(lines)
        elif lines.clearing not in (lines.backward, lines.step):
            edits = _clearing_moved(lines)
    edits = edits or moved(record, cleared, step)
    return Fix("zero_grad_or_step_order", text, False, at(cleared), "It costs nothing.", edits=edits)


def _in_one_function(record: Record, one: MeasuredEmptied, call: BackwardCall) -> _Lines | None:
    """The innermost function, or cell, that has a line of each of the three."""
    latest = Cells.of(record).latest
    calling = [spot for place in (call.place, *reversed(call.place.stack)) if (spot := at(place)) is not None]
    for step in one.stepped:
        run = _run_of(latest, step)
        if run is None:
            continue
        function = syntax.function_at(run.source, step.line)
        clearing = [line.line for line in one.cleared if _run_of(latest, line) is run]
        calls = [line for cell, line in calling if cell == run.cell]
        there = [
            next((line for line in found if syntax.function_at(run.source, line) == function), None)
            for found in (calls, clearing)
        ]
        if there[0] is not None and there[1] is not None:
            return _Lines(run, there[0], there[1], step.line)
    return None


def _run_of(latest: list[CellRun], line: TextLine) -> CellRun | None:
    runs = (one for one in latest if (one.file == line.file if line.file is not None else one.cell == line.cell))
    return next(runs, None)


def _block_with(text: str, clearing: int, backward: int, step: int) -> ast.With | ast.AsyncWith | None:
    """The `with` at whose end gradients are cleared, if the backward is in it and the step behind it."""
    for one in reversed(syntax.statements_at(text, clearing)):
        if isinstance(one, (ast.With, ast.AsyncWith)) and clearing < one.body[0].lineno:
            last = one.end_lineno or one.lineno
            return one if one.body[0].lineno <= backward <= last < step else None
    return None


def _into(lines: _Lines, block: ast.With | ast.AsyncWith) -> Edits:
    """Move what follows a block, up to the step, to its end."""
    text, run = lines.run.source, lines.run
    behind = syntax.behind(text, block)
    last = next((at for at, one in enumerate(behind) if one.lineno <= lines.step <= (one.end_lineno or 0)), None)
    if last is None or any(isinstance(node, ast.Return) for one in behind[:last] for node in ast.walk(one)):
        return ()
    taken, end = behind[: last + 1], block.body[-1]
    new = [line for one in taken for line in text_edit.statement_lines(text, one)]
    added = (
        text_edit.insert_behind_block(run.cell, text, end, new)
        if syntax.blocks_of(end)
        else text_edit.insert_after(run.cell, text, end, new)
    )
    return (*added, *text_edit.remove(run.cell, text, *taken)) if added else ()


def _behind_backward(lines: _Lines) -> Edits:
    """Move a step that stands before the backward of its loop behind it, in the same block."""
    text, run = lines.run.source, lines.run
    found = [syntax.statements_at(text, line)[-1:] for line in (lines.step, lines.backward)]
    if not all(found):
        return ()
    step, backward = found[0][0], found[1][0]
    if not isinstance(step, ast.Expr) or syntax.block_of(text, step) is not syntax.block_of(text, backward):
        return ()
    added = text_edit.insert_after(run.cell, text, backward, text_edit.statement_lines(text, step))
    return (*text_edit.remove(run.cell, text, step), *added)


def _clearing_moved(lines: _Lines) -> Edits:
    """Move what clears behind the step, with the loop or condition around it that has neither of the others."""
    text, run = lines.run.source, lines.run
    around = syntax.statements_at(text, lines.clearing)
    whole = next((one for one in around if not any(_has(one, line) for line in (lines.backward, lines.step))), None)
    step = next(iter(syntax.statements_at(text, lines.step)[-1:]), None)
    if whole is None or step is None or syntax.blocks_of(step) or any(syntax.targets(whole)):
        return ()
    if any(isinstance(one, ast.If) and not _has(one, lines.step) for one in around if one is not whole):
        return ()  # it clears on a condition
    if isinstance(whole, ast.If | ast.Try) or not lines.clearing < lines.step:
        return ()
    for one in syntax.behind(text, step):  # steps of other optimizers follow: it may clear their gradients, too
        if not isinstance(one, ast.Expr) or not any(name.endswith(".step") for name in syntax.calls_in(one)):
            break
        step = one
    added = text_edit.insert_after(run.cell, text, step, text_edit.statement_lines(text, whole))
    return (*text_edit.remove(run.cell, text, whole), *added) if added else ()


def _has(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)
