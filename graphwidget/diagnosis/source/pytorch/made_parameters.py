"""Parameters that an expression makes and computes with, so that it gives a computed tensor: ``Parameter(a).to(t)``."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax

__all__ = ["as_parameter", "computed_from"]


def computed_from(value: ast.expr | None) -> ast.Call | None:
    """The one call that makes a leaf, in an expression that computes something from it; None: it is kept itself."""
    leaves = [node for node in ast.walk(value) if isinstance(node, ast.Call) and _makes_leaf(node)] if value else []
    if len(leaves) != 1 or leaves[0] is value:
        return None
    node: ast.AST | None = value
    while node is not leaves[0]:  # only through operations: no container, no other module
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts: list[ast.AST] = [node.func.value, *node.args]
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            parts = [node.operand]
        elif isinstance(node, ast.Subscript):
            parts = [node.value]
        else:
            return None
        node = next((one for one in parts if any(inner is leaves[0] for inner in ast.walk(one))), None)
    return leaves[0]


def _makes_leaf(call: ast.Call) -> bool:
    last = syntax.last_name(ast.unparse(call.func))
    asks = any(k.arg == "requires_grad" and ast.unparse(k.value) == "True" for k in call.keywords)
    return last == "Parameter" or asks


def as_parameter(value: ast.expr, made: ast.Call) -> str:
    """The expression with the parameter outermost: ``Parameter(a.to(t))``; empty where it cannot be written so."""
    is_parameter = syntax.last_name(ast.unparse(made.func)) == "Parameter"
    if is_parameter and (len(made.args) != 1 or made.keywords):
        return ""
    inner = made.args[0] if is_parameter else _without_flag(made)
    outer = ast.unparse(made.func) if is_parameter else "torch.nn.Parameter"
    copy = ast.parse(ast.unparse(value), mode="eval").body
    return f"{outer}({ast.unparse(_Replaced(made, inner).visit(copy))})"


def _without_flag(call: ast.Call) -> ast.expr:
    return ast.Call(call.func, call.args, [one for one in call.keywords if one.arg != "requires_grad"])


class _Replaced(ast.NodeTransformer):
    """An expression with another one in place of a call, found by its text."""

    def __init__(self, old: ast.Call, new: ast.expr) -> None:
        self.old, self.new = ast.unparse(old), new

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self.new if ast.unparse(node) == self.old else self.generic_visit(node)
