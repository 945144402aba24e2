"""Leaves without a name, ``torch.randn(3, requires_grad=True) * 0.1``: what has the name was computed from one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits

__all__ = ["makes_a_leaf", "with_these_values"]


def with_these_values(cell: int | None, text: str, made_by: ast.stmt) -> tuple[str, Edits] | None:
    """The statement that makes a leaf of what was computed from one without a name, and its edits; None: no such.

    ``w = torch.randn(3, requires_grad=True) * 0.1`` becomes ``w = (torch.randn(3) * 0.1).requires_grad_()``. So do all
    elements of a list, and what a function returns.
    """
    given = getattr(made_by, "value", None)
    edits: Edits = ()
    new = ast.unparse(made_by)
    for whole in _elements(given) if isinstance(given, ast.expr) else ():
        leaves = [node for node in ast.walk(whole) if makes_a_leaf(node)]
        if makes_a_leaf(whole) or not leaves:
            continue
        if len(leaves) > 1:
            return None
        values = ast.unparse(_Plain().visit(ast.parse(ast.unparse(whole), mode="eval").body))
        called = ast.unparse(leaves[0].func) if isinstance(leaves[0], ast.Call) else ""
        if called.endswith("Parameter"):
            leaf = f"{called}({values})"
        else:
            leaf = f"{values if isinstance(whole, ast.Call) else f'({values})'}.requires_grad_()"
        edits += text_edit.replace_node(cell, text, whole, leaf)
        new = new.replace(ast.unparse(whole), leaf)
    return (new, edits) if edits else None


def _elements(given: ast.expr) -> Iterator[ast.expr]:
    """What a list, a dict or a comprehension holds; else the expression itself."""
    if isinstance(given, (ast.List, ast.Tuple)):
        yield from (inner for one in given.elts for inner in _elements(one))
    elif isinstance(given, ast.Dict):
        yield from (inner for one in given.values for inner in _elements(one))
    elif isinstance(given, (ast.ListComp, ast.GeneratorExp)):
        yield from _elements(given.elt)
    elif isinstance(given, ast.DictComp):
        yield from _elements(given.value)
    elif isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "append":
        yield from (inner for one in given.args for inner in _elements(one))
    else:
        yield given


def makes_a_leaf(node: ast.AST) -> bool:
    """Whether a call is ``randn(3, requires_grad=True)``, ``randn(3).requires_grad_()`` or ``Parameter(randn(3))``."""
    if not isinstance(node, ast.Call):
        return False
    last = ast.unparse(node.func).rsplit(".", 1)[-1]
    return last == "Parameter" or (last == "requires_grad_" and not node.args) or any(map(_asks, node.keywords))


def _asks(keyword: ast.keyword) -> bool:
    return keyword.arg == "requires_grad" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True


class _Plain(ast.NodeTransformer):
    """Makes the call that makes a leaf one that makes a plain tensor."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not makes_a_leaf(node):
            return node
        if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            return node.func.value
        if ast.unparse(node.func).endswith("Parameter") and node.args:
            return node.args[0]
        node.keywords = [one for one in node.keywords if not _asks(one)]
        return node
