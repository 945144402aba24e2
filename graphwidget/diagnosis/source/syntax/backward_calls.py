"""Calls of `backward` and `autograd.grad` in program text: their roots and their inputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from graphwidget.diagnosis.source.syntax.names import calls_in, changed, last_name, names_in
from graphwidget.diagnosis.source.syntax.statements import beginning_at, parse


def is_small(statement: ast.stmt) -> bool:
    """Whether a statement is one step: a simple one, or a `with` or `for` over such, without a call of backward."""
    if not isinstance(statement, (ast.With, ast.For)):
        return not hasattr(statement, "body")
    parts = [node for node in ast.walk(statement) if isinstance(node, ast.stmt)]
    runs = any(name.endswith((".backward", ".grad")) for name in calls_in(statement))
    return len(parts) <= 6 and not runs


def backward_root(line: str) -> str | None:
    """What `.backward` is called on in a statement that is only this call, without arguments that matter."""
    tree = parse(line)
    first = tree.body[0] if tree and len(tree.body) == 1 else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Call):
        return None
    call = first.value
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
        return None
    if last_name(ast.unparse(call.func.value)) != "autograd":
        return ast.unparse(call.func.value) if not call.args else None
    root = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if isinstance(root, (ast.List, ast.Tuple)):
        root = root.elts[0] if len(root.elts) == 1 else None
    return ast.unparse(root) if root is not None else None


def receivers(line: str) -> list[str]:
    """What `.backward` is called on in a line, in the order of the text, also behind ``if train:`` or ``else:``."""
    tree = parse(line) or parse(re.sub(r"^\s*(?:else|try|finally|except[^:]*)\s*:", "", line).strip())
    tree = tree or parse(re.sub(r"^\s*elif\b", "if", line))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree else []
    found = [n.func for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "backward"]
    found.sort(key=lambda func: (func.end_lineno or 0, func.end_col_offset or 0))
    return [ast.unparse(func.value) for func in found]


def asked(line: str, what: Literal["outputs", "inputs"]) -> list[str]:
    """Expressions that a line passes as roots or inputs: `y`, or `x` and `w`, in ``torch.autograd.grad(y, [x, w])``.

    Only the first call of `grad` counts, or of `backward`, which can only have `inputs`.
    """
    tree = parse(line)
    for call in ast.walk(tree) if tree else ():
        called = ast.unparse(call.func).rsplit(".", 1)[-1] if isinstance(call, ast.Call) else ""
        if not isinstance(call, ast.Call) or called not in ("grad", "backward"):
            continue
        given = [keyword.value for keyword in call.keywords if keyword.arg == what]
        if called == "grad":
            given += call.args[:1] if what == "outputs" else call.args[1:2]
        for one in given[:1]:
            return [ast.unparse(part) for part in (one.elts if isinstance(one, (ast.List, ast.Tuple)) else [one])]
    return []


def roots_of_calls(node: ast.AST) -> Iterator[ast.expr]:
    """What calls of `backward` or `grad` in a node may begin at: ``loss.backward()``, ``engine.backward(loss)``."""
    for call in ast.walk(node):
        called = call.func if isinstance(call, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if not isinstance(call, ast.Call) or name not in ("backward", "grad"):
            continue
        if name == "backward" and isinstance(called, ast.Attribute):
            yield called.value
        yield from call.args[:1]
        yield from (one.value for one in call.keywords if one.arg in ("tensors", "outputs"))


def summed(loop: ast.For, line: int) -> tuple[str, list[str]] | None:
    """The sum over a loop that runs backward on each element, and the statements that then replace the loop.

    None where its passes differ in more than that: ``for l in losses: l.backward(); seen.append(l)``.
    """
    call = next(
        (s for s in loop.body if s.lineno <= line <= (s.end_lineno or line) and backward_root(ast.unparse(s))), None
    )
    root = backward_root(ast.unparse(call)) if call is not None else None
    rest = [s for s in loop.body if s is not call]
    over = names_in(loop.target)
    if call is None or root is None or loop.orelse or any(hasattr(s, "body") for s in rest):
        return None
    used = names_in(ast.parse(root))
    if not over & used or any(names_in(s) & over or changed(s) & used for s in rest):
        return None
    target = ast.unparse(loop.target)
    named = target[1:-1] if isinstance(loop.target, ast.Tuple) and target.startswith("(") else target
    each = "" if root == target else f"{root} for {named} in "
    whole = f"sum({each}{ast.unparse(loop.iter)})"
    return whole, [f"{whole}.backward()" if s is call else ast.unparse(s) for s in loop.body]


def backward_calls(source: str, line: int) -> int:
    """How many calls of `backward` or `grad` the statements make that begin at a line."""
    return sum(
        name.rsplit(".", 1)[-1] in ("backward", "grad") for s in beginning_at(source, line) for name in calls_in(s)
    )
