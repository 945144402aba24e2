"""Grad mode that a function switches off and on again, and leaves off where it is left in between: an early return."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Fix

__all__ = ["LeftEarly", "as_block", "left_early"]

_FROM_A_LOOP, _FROM_A_FUNCTION = (ast.Continue, ast.Break), (ast.Return, ast.Raise)


@dataclass(frozen=True)
class LeftEarly:
    """A statement that switches grad mode off, the one of its block that switches it on, and one between that leaves.

    `leaving`: None: no statement does, so an error has left it.
    """

    run: CellRun
    off: ast.Expr
    on: ast.Expr
    between: tuple[ast.stmt, ...]
    leaving: ast.stmt | None

    @property
    def text(self) -> str:
        """What happened, as the end of a sentence about `off`."""
        on = f"{short(ast.unparse(self.on))} ({where(place_of(self.run, self.on.lineno))})"
        if self.leaving is None:
            return f", and {on}, which would switch it on again, did not run"
        leaving = f"{short(ast.unparse(self.leaving))} ({where(place_of(self.run, self.leaving.lineno))})"
        return f", and {leaving} leaves before {on} switches it on again"

    def fix(self) -> Fix:
        """A block in place of the two statements: grad mode is as before it however it is left."""
        text, edits = as_block(self.run, self.off, self.on, self.between)
        text += ": however it is left, grad mode is then as it was before."
        return Fix("remove_no_grad", text, False, at(place_of(self.run, self.off.lineno)), edits=edits)


def as_block(run: CellRun, off: ast.Expr, on: ast.Expr, between: Sequence[ast.stmt]) -> tuple[str, text_edit.Edits]:
    """A block in place of two statements that switch grad mode off and on: in words, and the edits."""
    switch = re.sub(r"^((?:\w+\.)+?)(?:autograd\.)?set_grad_enabled\(.*", r"\1no_grad()", ast.unparse(off.value))
    last = place_of(run, between[-1].lineno) if between else None
    text = f"Put what is between the two under `with {switch}:` ({where(place_of(run, off.lineno))} to {where(last)})"
    strings = (n for one in between for n in ast.walk(one) if isinstance(n, (ast.Constant, ast.JoinedStr)))
    alone = all(len(source.beginning_at(run.source, one.lineno)) == 1 for one in (off, on))
    if not between or not alone or any(one.lineno != one.end_lineno for one in strings):
        return text, ()
    lines = source.lines_of(run.source)[off.end_lineno or 0 : on.lineno - 1]
    depth = off.col_offset
    new = [f"    {line[depth:]}" if line.strip() else "" for line in lines]
    first, end = off.lineno, on.end_lineno or on.lineno
    return text, text_edit.replace_lines(run.cell, run.source, first, end, [f"with {switch}:", *new])


def left_early(run: CellRun, off: ast.stmt, *, by_error: bool = False) -> LeftEarly | None:
    """How a block is left after a statement that switches grad mode off, and before one that switches it on.

    Parameters
    ----------
    by_error
        Also where no statement between leaves it: it was measured that grad mode stayed off.
    """
    if not isinstance(off, ast.Expr) or grad_modes.switches_off(off.value) is not True:
        return None
    between: list[ast.stmt] = []
    for one in source.behind(run.source, off):
        if isinstance(one, ast.Expr) and "set_grad_enabled(" in ast.unparse(one):
            inside = list(_leaving(between))
            if grad_modes.switches_off(one.value) is True or not (inside or by_error):
                return None
            return LeftEarly(run, off, one, tuple(between), inside[0] if inside else None)
        between.append(one)
    return None


def _leaving(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that leave a block: not those that go on with a loop inside it."""
    for one in source.own_statements(block):
        loops = [loop for loop in source.own_statements(block) if isinstance(loop, (ast.For, ast.While))]
        inside = any(one is not loop and one in source.own_statements(loop.body) for loop in loops)
        if isinstance(one, _FROM_A_FUNCTION) or (isinstance(one, _FROM_A_LOOP) and not inside):
            yield one
