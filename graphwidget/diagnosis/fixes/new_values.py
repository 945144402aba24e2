"""A new tensor instead of a write that takes only the values: ``theta = theta + update``.

For ``theta.data.add_(update)``, ``theta.data = theta.data + update``, and ``theta.add_(update)`` without grad mode.
"""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place.statements import out_of_place
from graphwidget.diagnosis.source.pytorch import grad_modes

__all__ = ["instead_of_write", "rebound_by", "written_to"]

_ALIASES = ("data", "detach")
_OPERATORS: dict[str, type[ast.operator]] = {"add_": ast.Add, "sub_": ast.Sub, "mul_": ast.Mult, "div_": ast.Div}


def instead_of_write(cell: int | None, text: str, statement: ast.stmt) -> tuple[str, Edits]:
    """A line that gives a name or an attribute a new tensor, and its edits; none where others keep the old one.

    Of a loop over a list, which does nothing else, a list of new tensors.
    """
    leaf, new = written_to(statement), _new(statement)
    if leaf is None or not new or syntax.statement_of(syntax.line_text(text, statement.lineno)) is None:
        return "", ()
    block: ast.stmt = statement
    loop = syntax.loop_at(text, statement.lineno)
    if isinstance(loop, ast.For) and syntax.names_in(leaf) & syntax.bound(loop.target) and isinstance(leaf, ast.Name):
        block, new = loop, _of_list(loop, statement, leaf.id, new)
    elif isinstance(leaf, ast.Name) and not _is_own(text, statement, leaf.id):
        new = ""
    switch = grad_modes.around(text, block)
    if switch is not None:
        if not isinstance(switch.outer, ast.With) or len(switch.outer.body) > 1 or len(switch.outer.items) > 1:
            return "", ()
        block = switch.outer
    edits = text_edit.replace_lines(cell, text, block.lineno, block.end_lineno or block.lineno, [new])
    return (new, edits) if new else ("", ())


def rebound_by(statement: ast.stmt) -> tuple[str, ...]:
    """What `instead_of_write` gives a new tensor in the place of a statement: it took its values anyway."""
    if isinstance(statement, ast.With) and any(
        grad_modes.switches_off(one) for one in grad_modes.expressions(statement)
    ):
        return tuple(ast.unparse(leaf) for one in statement.body if (leaf := written_to(one)) is not None)
    if isinstance(statement, ast.For) and len(statement.body) == 1:
        leaf, new = written_to(statement.body[0]), _new(statement.body[0])
        listed = _of_list(statement, statement.body[0], leaf.id, new) if isinstance(leaf, ast.Name) else ""
        return (listed.partition(" = ")[0],) if listed else ()
    leaf = written_to(statement)
    through = any(isinstance(node, ast.expr) and _is_alias(node) for node in ast.walk(statement))
    return (ast.unparse(leaf),) if leaf is not None and through else ()


def written_to(statement: ast.stmt) -> ast.Name | ast.Attribute | None:
    """The whole tensor that a statement writes to, as a program can assign to it: ``theta`` of ``theta.data -= u``."""
    if isinstance(statement, ast.AugAssign):
        node: ast.expr = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        node = statement.targets[0]
        if not _is_alias(node):
            return None
    elif isinstance(statement, ast.Expr):
        node = statement.value
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            node = node.func.value
        if node is statement.value:
            return None
    else:
        return None
    while _is_alias(node):
        node = node.func.value if isinstance(node, ast.Call) else node.value  # type: ignore[attr-defined]
    plain = node
    while isinstance(plain, ast.Attribute):
        plain = plain.value
    return node if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(plain, ast.Name) else None


def _is_alias(node: ast.expr) -> bool:
    """``x.data`` or ``x.detach()``."""
    inner = node.func if isinstance(node, ast.Call) and not node.args else node
    called = isinstance(node, ast.Call)
    return isinstance(inner, ast.Attribute) and inner.attr == _ALIASES[called]


class _Whole(ast.NodeTransformer):
    """``theta`` for ``theta.data`` and ``theta.detach()``."""

    def __init__(self, leaf: str) -> None:
        self.leaf = leaf

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and _is_alias(node):
            inner = node.func if isinstance(node, ast.Call) else node
            if isinstance(inner, ast.Attribute) and ast.unparse(inner.value) == self.leaf:
                inner.value.ctx = getattr(node, "ctx", ast.Load())  # type: ignore[attr-defined]
                return inner.value
        return self.generic_visit(node)


def _new(statement: ast.stmt) -> str:
    """The line that gives the tensor a new value; empty: there is no such form."""
    leaf = written_to(statement)
    copied = syntax.statement_of(ast.unparse(statement))
    if leaf is None or copied is None:
        return ""
    name = ast.unparse(leaf)
    plain = ast.unparse(_Whole(name).visit(copied))
    if isinstance(statement, ast.Assign):
        return plain
    if isinstance(copied, ast.AugAssign):
        return f"{name} = {ast.unparse(ast.BinOp(ast.Name(name), copied.op, copied.value))}"
    call = copied.value if isinstance(copied, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == name:
        if call.func.attr == "copy_":
            return f"{name} = {ast.unparse(call.args[0])}" if len(call.args) == 1 and not call.keywords else ""
        operator = _OPERATORS.get(call.func.attr)
        if operator is not None and len(call.args) == 1 and not call.keywords:
            return f"{name} = {ast.unparse(ast.BinOp(ast.Name(name), operator(), call.args[0]))}"
    return out_of_place(plain)


def _of_list(loop: ast.For, statement: ast.stmt, leaf: str, new: str) -> str:
    """``ps = [p - u for p, u in zip(ps, us)]`` for a loop that writes to each; empty: it does more, or has no list."""
    if len(loop.body) != 1 or loop.body[0] is not statement or loop.orelse:
        return ""
    several = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "zip"
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) and several else [loop.target]
    lists = loop.iter.args if isinstance(loop.iter, ast.Call) and several else [loop.iter]
    found = [one for target, one in zip(targets, lists) if ast.unparse(target) == leaf]
    if len(found) != 1 or not isinstance(found[0], (ast.Name, ast.Attribute)):
        return ""
    given = new.removeprefix(f"{leaf} = ")
    shown = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    return f"{ast.unparse(found[0])} = [{given} for {', '.join(map(ast.unparse, shown))} in {ast.unparse(loop.iter)}]"


def _is_own(text: str, statement: ast.stmt, name: str) -> bool:
    """Whether the function of a statement, or the cell, gives a name its value, and nobody who calls it."""
    inside = syntax.function_at(text, statement.lineno)
    tree = syntax.parse(text)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    given = (one for one in syntax.own_statements(body) if isinstance(one, (ast.Assign, ast.AnnAssign)))
    if inside is None:
        return True
    return name not in _arguments(inside[1]) and any(name in syntax.targets(one) for one in given)


def _arguments(function: ast.FunctionDef) -> set[str]:
    return {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
