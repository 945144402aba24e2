"""Where a program asks for re-entrant checkpoints, and the edits after which it asks for others."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.model import CellRun

__all__ = ["without_reentrance"]

_OPTION = "use_reentrant"


def without_reentrance(runs: Iterable[CellRun], calls: Iterable[tuple[CellRun, ast.Call]] = ()) -> Edits:
    """Edits after which no text asks for re-entrance.

    The option may be a keyword, a default (``kwargs.setdefault("use_reentrant", True)``), or an entry of a dict.

    Parameters
    ----------
    calls
        Calls of checkpoints, each with the text that it is in: those that leave the option out get it.
    """
    edits: Edits = ()
    for run in runs:
        asked = (value for node in syntax.nodes_of(run.source) for value in _given(node))
        for value in asked:
            if ast.unparse(value) != "False":
                edits += text_edit.replace_node(run.cell, run.source, value, "False")
    for run, call in calls:
        if not any(one.arg in (_OPTION, None) for one in call.keywords):
            edits += text_edit.with_argument(run.cell, run.source, call, f"{_OPTION}=False")
    return edits


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
