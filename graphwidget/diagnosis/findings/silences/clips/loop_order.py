"""Gradients that are clipped before they are there, or when the step has already gone by them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Finding, Fix, Place, Record

__all__ = ["CLIPS", "find"]

CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_")
_BACKWARDS, _STEPS, _CLEARS = ("backward",), ("step",), ("zero_grad",)
_ORDER = (CLIPS, _BACKWARDS, _STEPS)


def find(record: Record) -> Iterator[Finding]:
    """Yield a finding for each such line."""
    stepped = {at(write.place) for write in record.writes if write.optimizer}
    latest = Cells.of(record).latest
    for run in latest:
        if any(name in run.source for name in CLIPS):  # a long file is walked only if it may have such a line
            for block in _blocks(run):
                yield from _clipped_too_early(latest, run, block, stepped)
                yield from _clipped_too_late(run, block, stepped)


def _blocks(run: CellRun) -> Iterator[list[ast.stmt]]:
    for node in syntax.nodes_of(run.source):
        if isinstance(node, (ast.Module, ast.stmt)):
            yield from syntax.blocks_of(node)


def _calls(statement: ast.stmt, names: tuple[str, ...]) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return False
    return any(called.rsplit(".", 1)[-1] in names for called in syntax.calls_in(statement))


# ------------------------------------------------------------------ clipped before the backward


def _clipped_too_early(
    latest: list[CellRun], run: CellRun, block: list[ast.stmt], stepped: set[tuple[int, int] | None]
) -> Iterator[Finding]:
    """A clip that stands before the backward of its pass, while the gradients are cleared in each pass.

    The step and what clears the gradients stand beside both, or beside the only call of their function.
    """
    clips = [i for i, one in enumerate(block) if _calls(one, CLIPS)]
    backwards = [i for i, one in enumerate(block) if _calls(one, _BACKWARDS)]
    if len(clips) != 1 or not backwards or clips[0] >= backwards[0] or run.cell is None:
        return
    line, after = block[clips[0]], block[backwards[-1]]
    step = _step_behind(run, block, backwards[-1], stepped) or _step_behind_the_caller(latest, run, block, stepped)
    if step is None:
        return
    if not isinstance(line, ast.Expr) or len({one.lineno for one in (line, after)}) < 2:
        edits: text_edit.Edits = ()
    else:
        made = text_edit.statement_lines(run.source, line)
        edits = (
            *text_edit.remove(run.cell, run.source, line),
            *text_edit.insert_after(run.cell, run.source, after, made),
        )
    behind = place_of(run, after.lineno)
    why = (
        f"runs before {short(behind.source)} ({where(behind)}). At that time the gradients of this pass are not "
        "there: it clips nothing that a step uses."
    )
    yield _of(run, line, why, "Gradients are clipped before the backward computes them.", behind, step, edits)


def _clipped_too_late(run: CellRun, block: list[ast.stmt], stepped: set[tuple[int, int] | None]) -> Iterator[Finding]:
    """A clip that stands behind the only step of its block, where the gradients are cleared before the next one.

    They are cleared behind the clip, or before the backward of the next pass. One whose norm is taken is there to
    measure it.
    """
    clips, backwards, steps = ([i for i, one in enumerate(block) if _calls(one, which)] for which in _ORDER)
    steps = [i for i in steps if (run.cell, block[i].lineno) in stepped]  # not those of schedules
    if len(clips) != 1 or len(steps) != 1 or not steps[0] < clips[0] or any(at_ > steps[0] for at_ in backwards):
        return
    line, step = block[clips[0]], block[steps[0]]
    clears = any(_calls(one, _CLEARS) for one in block[0 if backwards else clips[0] :])
    if not clears or run.cell is None or not isinstance(line, ast.Expr):
        return
    edits: text_edit.Edits = ()
    if step.lineno != line.lineno:
        made = text_edit.statement_lines(run.source, line)
        edits = (
            *text_edit.insert_before(run.cell, run.source, step, made),
            *text_edit.remove(run.cell, run.source, line),
        )
    behind = place_of(run, block[backwards[-1]].lineno) if backwards else None
    stepping = place_of(run, step.lineno)
    why = (
        f"runs behind {short(stepping.source)} ({where(stepping)}), which has gone by the gradients as they were. They "
        "are cleared before the next step: it clips nothing that a step uses."
    )
    yield _of(run, line, why, "Gradients are clipped when the step has already been made.", behind, stepping, edits)


def _of(
    run: CellRun, line: ast.stmt, why: str, headline: str, behind: Place | None, stepping: Place, edits: text_edit.Edits
) -> Finding:
    place = place_of(run, line.lineno)
    return Finding(
        "silent",
        "warning",
        f"{short(ast.unparse(line))} ({where(place)}) {why}",
        headline,
        made_at=place,
        cause=place,
        names=tuple(name for name in CLIPS if name in ast.unparse(line))[:1],
        fixes=(
            Fix(
                "clip_after_backward",
                f"Clip between the backward{f' ({where(behind)})' if behind else ''} and the step ({where(stepping)}).",
                False,
                at(place),
                edits=edits,
            ),
        ),
    )


def _step_behind(run: CellRun, block: list[ast.stmt], at_: int, stepped: set[tuple[int, int] | None]) -> Place | None:
    """The last step of a block, if all its steps come behind a statement of it and it clears the gradients, too."""
    steps = [i for i, one in enumerate(block) if _calls(one, _STEPS)]
    ran = [i for i in steps if (run.cell, block[i].lineno) in stepped]
    if not ran or steps[0] <= at_ or not any(_calls(one, _CLEARS) for one in block):
        return None
    return place_of(run, block[ran[-1]].lineno)


def _step_behind_the_caller(
    latest: list[CellRun], run: CellRun, block: list[ast.stmt], stepped: set[tuple[int, int] | None]
) -> Place | None:
    """The same where the only call of the function stands, of which a block is the body."""
    found = syntax.function_at(run.source, block[0].lineno)
    if found is None or found[1].body != block or any(_calls(one, (*_STEPS, *_CLEARS)) for one in block):
        return None
    calling = [
        (other, outer, at_)
        for other in latest
        for outer in _blocks(other)
        if outer is not block
        for at_, one in enumerate(outer)
        if not syntax.blocks_of(one) and _calls(one, (found[1].name,)) and not _calls(one, CLIPS)
    ]
    return _step_behind(calling[0][0], calling[0][1], calling[0][2], stepped) if len(calling) == 1 else None
