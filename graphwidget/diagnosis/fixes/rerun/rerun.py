"""A rerun: an edit after which the program builds a part of its graph again."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import short
from graphwidget.model import CellRun

__all__ = ["AT_START", "IN_ITS_LOOP", "Rerun", "Statement", "begins_on_head_line", "first_step", "quoted"]

AT_START = "Compute {what} at the start of `{function}`: each call of it then builds its own graph."
IN_ITS_LOOP = "Move {what} into the loop of `{function}`: then each item has its own graph."


@dataclass(frozen=True)
class Rerun:
    """A sentence, the (cell, line) of the edit, and the edits.

    `sure`: the program then goes on as before, as far as the graph shows what helps. Otherwise only a trial tells.
    """

    sentence: str
    at: tuple[int, int] | None
    edits: Edits
    sure: bool = True


@dataclass(frozen=True)
class Statement:
    """A statement, and the run of its cell."""

    run: CellRun
    node: ast.stmt

    @property
    def key(self) -> tuple[int, int, int]:
        """(run, line, column): in the order of running, and then of the text."""
        return self.run.run, self.node.lineno, self.node.col_offset

    @property
    def lines(self) -> list[str]:
        """Its lines; if it shares its line, the statement alone."""
        around = [s for s in syntax.beginning_at(self.run.source, self.node.lineno) if s.lineno == self.node.lineno]
        if len(around) > 1 and self.node in around:
            return ast.unparse(self.node).splitlines()
        return text_edit.statement_lines(self.run.source, self.node)


def quoted(statements: Sequence[Statement]) -> str:
    """Statements and their places, as a sentence can name them."""
    each = [f"{short(ast.unparse(one.node))} (In[{one.run.cell}], line {one.node.lineno})" for one in statements]
    if len(each) > 3:
        return f"{each[0]} and {len(each) - 1} more lines, to {each[-1]}"
    return " and ".join([", ".join(each[:-1]), each[-1]]) if len(each) > 1 else each[0]


def first_step(function: ast.FunctionDef) -> ast.stmt:
    """The first statement of a function that is not its documentation."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1 if documented and len(function.body) > 1 else 0]


def begins_on_head_line(block: ast.FunctionDef | ast.For | ast.While) -> bool:
    """Whether a body begins on the line of its head: no line can be inserted before it."""
    return block.body[0].lineno == block.lineno
