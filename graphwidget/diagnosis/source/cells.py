"""The cells of a record: the text of each as it was last run, and what stands at a line of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.model import CellRun, Record

__all__ = ["Cells", "Spot"]

Spot = tuple[int, int]  # (cell, line): the number of a cell, and a line of it from 1


class Cells:
    """The runs of cells, asked by cell.

    A cell is named by its number (its execution count), as places and edits name it. A cell that ran again has a new
    number; its old one still answers with the text that ran under it. `latest` has each cell of the notebook once.
    """

    def __init__(self, runs: Iterable[CellRun]) -> None:
        self._runs = sorted(runs, key=lambda run: run.run)

    @classmethod
    def of(cls, record: Record) -> Cells:
        return cls(record.runs.values())

    @cached_property
    def texts(self) -> dict[int, str]:
        """The text of each number as it was last run, in the order of running."""
        found: dict[int, str] = {}
        for run in self._runs:
            if run.cell is not None:
                found.pop(run.cell, None)
                found[run.cell] = run.source
        return found

    @cached_property
    def files(self) -> frozenset[int]:
        """The numbers that stand for files: a file has names of its own, and the cells of a notebook share theirs."""
        return frozenset(run.cell for run in self._runs if run.file is not None and run.cell is not None)

    @cached_property
    def latest(self) -> list[CellRun]:
        """The last run of each cell, in the order of running."""
        found: dict[object, CellRun] = {}
        for run in self._runs:
            key = run.cell_id if run.cell_id is not None else run.run
            found.pop(key, None)
            found[key] = run
        return list(found.values())

    def text(self, cell: int | None) -> str:
        """The text of a cell; empty where it is not known."""
        return self.texts.get(cell, "") if cell is not None else ""

    def line(self, at: Spot) -> str:
        """A line of a cell, stripped."""
        return syntax.line_text(self.text(at[0]), at[1])

    def beginning(self, spot: Spot | None) -> Spot | None:
        """The cell and first line of the statement at a line: one statement may have several lines."""
        around = syntax.statements_at(self.text(spot[0]), spot[1]) if spot is not None else []
        return (spot[0], around[-1].lineno) if spot is not None and around else spot

    def with_keyword(self, spot: Spot | None, keyword: str) -> Edits:
        """The statement at a line with one keyword more in its call of the engine; nothing where it is not known."""
        statement = self.statement(spot) if spot is not None else None
        if spot is None or statement is None:
            return ()
        return text_edit.with_keyword(spot[0], self.text(spot[0]), statement, keyword)

    def statement(self, at: Spot) -> ast.stmt | None:
        """The innermost statement that has a line."""
        return next(reversed(syntax.statements_at(self.text(at[0]), at[1])), None)

    def loop(self, at: Spot) -> ast.For | ast.While | None:
        """The innermost loop around a line."""
        return syntax.loop_at(self.text(at[0]), at[1])
