"""Whether statements that run again change anything: code after them has to read what they assign."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.fixes.rerun.rerun import Statement
from graphwidget.diagnosis.reuse.named_edges import NamedEdges
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source

__all__ = ["is_used"]


def is_used(setting: Setting, again: list[Statement], cell: str, line: int, loop: ast.For | ast.While | None) -> bool:
    """Whether what statements assign is read: by the next of them, by code after them, or by a function.

    It has to be read by the names that they assign. A tensor in a container, or with a second name, stays the same
    however often its first name is assigned.

    Parameters
    ----------
    cell, line, loop
        The text and the line before which they are inserted; the loop, if that line is its first.
    """
    behind = [loop] if loop is not None else list(_behind(cell, line))
    functions = [_taken(node) for run in setting.reuse.record.runs.values() for node in _functions(run.source)]
    nodes = [one.node for one in again]
    for position, node in enumerate(nodes):
        new = _stored(node)
        readers = [_loaded(reader) for reader in (*nodes[position + 1 :], *behind)] + functions
        if new and not any(new & loaded for loaded in readers):
            return False
    return not _read_by_another_name(setting, again)


def _read_by_another_name(setting: Setting, again: list[Statement]) -> bool:
    """Whether a line reads what these make by a name that they do not assign."""
    assigned = {name for one in again for name in _stored(one.node)}
    lines = {(one.run.run, line) for one in again for line in _lines(one.node)}
    graph, needed = setting.reuse.graph, setting.reuse.needed
    for edge in NamedEdges(setting, graph, setting.reuse.reached).all:
        user, tensor = graph.place_of(edge.user), graph.place_of(edge.tensor)
        if edge.tensor not in needed or user is None or tensor is None:
            continue
        made = (tensor.run, tensor.outer_line)
        if made not in lines or made == (user.run, user.outer_line):
            continue
        if not any(assigned & _parts(name) for name in edge.names):
            return True
    return False


def _lines(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _parts(path: str) -> set[str]:
    """The variable and the attributes of a path."""
    first, *rest = re.findall(r"\.?\w+", re.sub(r"\[[^]]*\]", "", path)) or [path]
    return {first, *rest}


def _behind(cell: str, line: int) -> Iterator[ast.stmt]:
    """The innermost statement at a line, and all that follow in the cell."""
    tree = source.parse(cell)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.stmt) and node.lineno >= line:
            yield node


_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _functions(cell: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
    tree = source.parse(cell)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, _Function):
            yield node


def _taken(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Names from outside that a function reads when it is called: not its arguments, nor their defaults."""
    body = function.body if isinstance(function.body, list) else [function.body]
    given = function.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    own = {one.arg for one in every if one is not None}
    return {name for part in body for name in _loaded(part)} - own


def _stored(statement: ast.stmt) -> set[str]:
    """Names that a statement assigns or fills, and attributes: ``.h``."""
    attributes = (n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return source.changed(statement) | {f".{node.attr}" for node in attributes}


def _loaded(node: ast.AST) -> set[str]:
    nodes = [n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)]
    return {n.id if isinstance(n, ast.Name) else f".{n.attr}" for n in nodes}
