"""A computed tensor as a plain attribute, in the place of the parameter that would take only its values.

``del layer.weight`` and ``layer.weight = w`` for ``layer.weight = nn.Parameter(w)`` and ``layer.weight.data = w``.
While a module has a parameter of that name, nothing else can be put there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeGuard

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits

__all__ = ["not_as_parameter", "not_into_a_leaf", "overwritten"]


def not_as_parameter(cell: int | None, text: str, statement: ast.stmt | ast.expr) -> Edits:
    """``self.w = kernel`` for ``self.w = nn.Parameter(kernel)``; what may be a parameter there is deleted before."""
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and len(n.args) == 1]
    made = [n for n in calls if syntax.last_name(ast.unparse(n.func)) == "Parameter"]
    whole = syntax.given(statement) if isinstance(statement, ast.stmt) else None
    values = ((n, ast.unparse(n.args[0]) if n is whole else syntax.in_brackets(n.args[0])) for n in made)
    edits = [e for n, value in values for e in text_edit.replace_node(cell, text, n, value)]
    if isinstance(statement, ast.stmt) and edits:
        gone = [f"del {target}" for target in syntax.targets(statement) if _may_be_a_parameter(text, statement, target)]
        edits += text_edit.insert_before(cell, text, statement, gone or _set_by_name(statement, made))
    return tuple(edits)


def not_into_a_leaf(cell: int | None, text: str, statement: ast.stmt) -> Edits:
    """``del layer.weight`` and ``layer.weight = w`` for ``layer.weight.data = w`` or ``layer.weight.data.copy_(w)``."""
    written = _written(statement)
    if written is None or syntax.statement_of(syntax.line_text(text, statement.lineno)) is None:
        return ()
    leaf, value = written[0], ast.unparse(written[1])
    if isinstance(leaf, ast.Attribute):
        lines = [f"del {ast.unparse(leaf)}", f"{ast.unparse(leaf)} = {value}"]
    elif isinstance(leaf, ast.Call) and ast.unparse(leaf.func) == "getattr" and len(leaf.args) == 2:
        where = ", ".join(map(ast.unparse, leaf.args))
        lines = [f"delattr({where})", f"setattr({where}, {value})"]
    else:
        return ()
    return text_edit.replace_lines(cell, text, statement.lineno, statement.end_lineno or statement.lineno, lines)


def overwritten(statement: ast.stmt) -> tuple[str, ...]:
    """The leaf of which a statement replaces all values: ``layer.weight`` of ``layer.weight.data = w``."""
    written = _written(statement)
    return (ast.unparse(written[0]),) if written is not None else ()


def _written(statement: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """The leaf that a statement writes to, and the value."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return (target.value, statement.value) if _is_data(target) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr != "copy_":
        return None
    return (method.value.value if _is_data(method.value) else method.value), call.args[0]


def _is_data(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "data"


def _may_be_a_parameter(text: str, statement: ast.stmt, target: str) -> bool:
    """An attribute of another module, or one that the text gives a value elsewhere, too."""
    owner, _, name = target.rpartition(".")
    if not owner or not name.isidentifier():
        return False
    nodes = syntax.nodes_of(text)
    others = (node for node in nodes if isinstance(node, (ast.Assign, ast.AnnAssign)) and node is not statement)
    given = any(target in syntax.targets(one) and one.lineno != statement.lineno for one in others)
    return owner != "self" or given or _is_registered(nodes, name)


def _is_registered(nodes: Iterable[ast.AST], name: str) -> bool:
    calls = (
        n for n in nodes if isinstance(n, ast.Call) and syntax.last_name(ast.unparse(n.func)) == "register_parameter"
    )
    return any(isinstance(one, ast.Constant) and one.value == name for call in calls for one in call.args[:1])


def _set_by_name(statement: ast.stmt, made: list[ast.Call]) -> list[str]:
    """What takes a parameter away, if there is one, before ``setattr(owner, name, nn.Parameter(w))``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "setattr" or len(call.args) != 3:
        return []
    owner, name, value = call.args
    if not any(value is one for one in made):
        return []
    return [f"{syntax.in_brackets(owner)}._parameters.pop({ast.unparse(name)}, None)"]
