"""Edits that give a tensor the graph back that a line took from it, and whether a graph would then be there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from graphwidget.analysis import edits, source
from graphwidget.model import CellRun

_TRAINS = re.compile(r"requires_grad=True|\.requires_grad_\(\)|\bnn\.(?!functional)[A-Z]\w*\(|\bParameter\(")
_FREEZES = re.compile(r"requires_grad_\(False\)|requires_grad *= *False")


def without_call(cell: str, statement: ast.stmt, called: str) -> edits.Edit:
    """A statement without ``.detach()`` or the like."""
    line = source.raw_line(cell, statement.lineno)
    raw = line.encode()
    if statement.lineno != statement.end_lineno or "tensor(" in line:
        return ()
    for node in sorted(
        (n for n in ast.walk(statement) if isinstance(n, ast.Call)), key=lambda n: -(n.end_col_offset or 0)
    ):
        if isinstance(node.func, ast.Attribute) and node.func.attr == called and not node.args:
            raw = raw[: node.func.value.end_col_offset] + raw[node.end_col_offset :]
    return edits.replaced(line, raw.decode())


def out_of_with(cell: str, around: ast.With, statement: ast.stmt) -> edits.Edit:
    """A statement, and what follows it in its `with`, behind the `with`."""
    if len(around.items) > 1:
        return ()
    old = edits.statement_text(cell, around)
    first = next((s for s in around.body if s.lineno <= statement.lineno <= (s.end_lineno or 0)), None)
    if first is None:
        return ()
    if first.lineno == around.lineno:
        new = [ast.unparse(s) for s in around.body]
    else:
        depth, kept = around.body[0].col_offset - around.col_offset, first.lineno - around.lineno
        new = [*(old[:kept] if first is not around.body[0] else ()), *(line[depth:] for line in old[kept:])]
    return (*(f"- {line}" for line in old), *(f"+ {line}" for line in new))


def without_decorator(cell: str, function: ast.FunctionDef, decorator: str) -> tuple[int, edits.Edit] | None:
    """A function without one of its decorators, and the line of that."""
    line = next((d.lineno for d in function.decorator_list if ast.unparse(d) == decorator), None)
    if line is None:
        return None
    texts = [source.line_text(cell, n) for n in range(line, function.lineno + 1)]
    return line, (*(f"- {text}" for text in texts), *(f"+ {text}" for text in texts[1:]))


def trains(runs: Iterable[CellRun], names: set[str]) -> bool:
    """Whether one of these names surely requires grad, or is a module whose parameters do: nothing freezes anything."""
    texts = [run.source for run in runs]
    if any(_FREEZES.search(text) for text in texts):
        return False
    trees = [tree for text in texts if (tree := source.parse(text)) is not None]
    classes = [s for tree in trees for s in ast.walk(tree) if isinstance(s, ast.ClassDef)]
    modules = {s.name for s in classes if any(ast.unparse(base).endswith("Module") for base in s.bases)}
    for name in names:
        given = [ast.unparse(source.given(s)) for text in texts for s in source.assignments(text, name)]
        if given and (_TRAINS.search(given[-1]) or given[-1].split("(", 1)[0] in modules):
            return True
    return False
