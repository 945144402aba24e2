"""Where a program asks for re-entrant checkpoints, and the edits after which it asks for others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.model import CellRun

__all__ = ["reentrance", "without_reentrance"]

_OPTION = "use_reentrant"


def reentrance(run: CellRun) -> list[ast.expr]:
    """What a text gives the option that is not known to be False, wherever it stands.

    As a keyword, a default of it (``kwargs.setdefault("use_reentrant", True)``), or an entry of a dict.
    """
    return [value for node in syntax.nodes_of(run.source) for value in _given(node) if ast.unparse(value) != "False"]


def without_reentrance(run: CellRun) -> Edits:
    """Edits of a text after which each option that it gives is False."""
    given = reentrance(run)
    return tuple(edit for one in given for edit in text_edit.replace_node(run.cell, run.source, one, "False"))


def _given(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.keyword) and node.arg == _OPTION:
        yield node.value
    elif isinstance(node, ast.Dict):
        yield from (value for key, value in zip(node.keys, node.values) if _is_option(key))
    elif isinstance(node, ast.Call) and len(node.args) == 2 and _is_option(node.args[0]):
        yield node.args[1]
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        if _is_option(node.targets[0].slice):
            yield node.value


def _is_option(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == _OPTION
