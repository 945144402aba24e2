"""Which lines read what a holder keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.other_names import other_names
from graphwidget.model import CellRun, Record

__all__ = ["is_read", "latest_first", "needed"]


def latest_first(record: Record) -> list[CellRun]:
    """Each cell once, as it was last run, latest first."""
    return Cells.of(record).latest[::-1]


def is_read(record: Record, name: str) -> bool:
    """Whether a line of the cells reads a variable or attribute, other than to put something into it."""
    return any(True for run in latest_first(record) for _ in _read_at(run.source, name))


def _read_at(cell: str, name: str) -> Iterator[int]:
    """Lines that read a variable or attribute, other than to put something into it or to compute its next value."""
    tree = source.parse(cell)
    for statement in source.steps_of_all(tree) if tree is not None else ():
        nodes = [node for node in ast.walk(statement) if isinstance(getattr(node, "ctx", None), ast.Load)]
        read = any(getattr(node, "id", getattr(node, "attr", None)) == name for node in nodes)
        grown = any(isinstance(node, ast.Attribute) and node.attr in source.GROWING for node in nodes)
        if read and not grown and name not in {source.last_name(target) for target in source.targets(statement)}:
            yield statement.lineno


def needed(record: Record, name: str, kept_at: set[tuple[int | None, int]]) -> bool:
    """Whether a line, other than those that keep it, reads what `name` keeps as more than a number.

    Parameters
    ----------
    kept_at
        (cell, line)s.
    """
    last = name.rsplit(".", 1)[-1]
    words = {last, *(one.name for one in other_names(tuple(Cells.of(record).texts.values()), last) if not one.inside)}
    trees = ((run, source.parse(run.source)) for run in latest_first(record))
    return any(
        (run.cell, line) not in kept_at
        for run, tree in trees
        if tree is not None
        for word in words
        for line in source.handed_on(tree, word)
    )
