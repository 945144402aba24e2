"""In-place calls on values that no variable holds: ``torch.tanh(x).add_(1)``, ``F.relu(conv(x), inplace=True)``."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.in_place import statements as inplace

__all__ = ["calls_on_temporaries", "operation", "writes_to_new_names", "written_new"]

_OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
}


def calls_on_temporaries(statement: ast.stmt | None) -> list[ast.Call]:
    """The in-place calls of a statement that modify a value without a name, the outermost first."""
    if statement is None or hasattr(statement, "body"):
        return []
    return [call for call in inplace.inplace_calls(statement) if isinstance(_target(call), (ast.Call, ast.BinOp))]


def _target(call: ast.Call) -> ast.expr | None:
    """What a call modifies; of a chain, what its first call modifies."""
    if isinstance(call.func, ast.Attribute) and not inplace.is_module(call.func.value):
        target: ast.expr | None = call.func.value
    else:
        target = call.args[0] if call.args else None
    inner = isinstance(target, ast.Call) and any(target is one for one in inplace.inplace_calls(ast.Expr(target)))
    return _target(target) if inner and isinstance(target, ast.Call) else target


def operation(call: ast.Call) -> str:
    """The name of a call's operation, as that of its node begins, in small letters: ``add`` of ``AddBackward0``."""
    return source.last_name(ast.unparse(call.func)).rstrip("_").replace("_", "")


def writes_to_new_names(line: list[ast.stmt]) -> list[tuple[ast.stmt, str]]:
    """The statements of one line that write in place to what an earlier one of them has assigned, with the operation.

    ``y = x.exp(); y += 1`` has ``y += 1`` and ``add``.
    """
    found: list[tuple[ast.stmt, str]] = []
    new: set[str] = set()
    for statement in line:
        if inplace.modified(ast.unparse(statement)) in new:
            if isinstance(statement, ast.AugAssign):
                found.append((statement, _OPERATIONS.get(type(statement.op), "?")))
            else:
                found += [(statement, operation(call)) for call in inplace.inplace_calls(statement)]
        new |= set(source.targets(statement))
    return found


def written_new(text: str) -> str:
    """``torch.tanh(x).add_(1)`` as ``torch.tanh(x).add(1)``; empty where other calls write, too."""
    statement = source.statement_of(text)
    found = calls_on_temporaries(statement)
    if statement is None or not found or len(found) < len(list(inplace.inplace_calls(statement))):
        return ""
    for call in found:
        argument = inplace.inplace_argument(call)
        if argument is not None:
            argument.value = ast.Constant(False)
        elif isinstance(call.func, ast.Attribute) and inplace.has_other_form(call.func.attr):
            call.func.attr = call.func.attr[:-1]
        else:
            return ""
    return ast.unparse(statement)
