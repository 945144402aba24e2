"""Statements that are moved into a loop must leave the loop's own variables as they are.

``for agent in agents: …`` before a loop ``for agent in agents:`` may use the same name; inside it, the first would
leave the last agent to the rest of each pass.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from graphwidget.diagnosis.fixes.rerun.rerun import Statement
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import TextEdit

__all__ = ["with_own_names"]


def with_own_names(statements: Sequence[Statement], loop: ast.For | ast.While | None) -> list[str] | None:
    """The lines of statements, in which no name is that of a variable of the loop that they would change.

    None: they assign such a variable themselves.
    """
    of_loop = syntax.names_in(loop.target) if isinstance(loop, ast.For) else set[str]()
    nodes = [one.node for one in statements]
    if any(of_loop.intersection(syntax.targets(node)) for node in nodes):
        return None
    clashing = {name for node in nodes for name in _bound(node) if name in of_loop}
    used = set[str]().union(*map(syntax.names_in, [*nodes, *([loop] if loop is not None else [])]))
    new = {name: _free(name, used) for name in clashing}
    return [line for one in statements for line in _renamed(one.lines, new)]


def _bound(node: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _free(name: str, used: Collection[str]) -> str:
    while name in used:
        name += "_"
    return name


def _renamed(lines: list[str], new: dict[str, str]) -> list[str]:
    text = "\n".join(lines)
    names = (node for node in syntax.nodes_of(text) if isinstance(node, ast.Name) and node.id in new)
    edits = [TextEdit(*text_edit.span(text, node), new[node.id]) for node in names]
    return text_edit.apply(text, edits).split("\n") if edits else lines
