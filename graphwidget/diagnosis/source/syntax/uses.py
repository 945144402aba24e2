"""Lines that use what a variable holds as more than a number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_NUMBERS = {"item", "detach", "tolist", "numpy", "append", "appendleft", "insert", "clear", "remove", "grad_fn",
            "shape", "dtype", "device", "requires_grad"}  # fmt: skip

_DROPS = {"pop", "popleft"}  # what they return is dropped where they are a statement of their own

_LOOKING = {"len", "print", "float", "int", "bool", "str", "repr", "type", "id", "isinstance"}


def handed_on(root: ast.AST, name: str) -> Iterator[int]:
    """The lines that read a variable, or an attribute of that name, as more than a number or something to look at.

    ``total = torch.stack(losses).sum()``, not ``print(losses[-1])`` or ``[loss.item() for loss in losses]``.
    """
    parents = {child: node for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(root):
        named = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        if named != name or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        part, above = node, parents.get(node)
        if isinstance(node, ast.Attribute) and isinstance(above, ast.Call) and above.func is node:
            continue  # a method of that name: ``x.mean()``
        last = ""
        while isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is part:
            last = above.attr if isinstance(above, ast.Attribute) else last
            if last in _NUMBERS:
                break
            part, above = above, parents.get(above)
        if last in _NUMBERS or isinstance(above, (ast.Expr, ast.Delete, ast.Compare)):  # no gradient comes from `x > 0`
            continue
        if last in _DROPS and isinstance(above, ast.Call) and isinstance(parents[above], ast.Expr):
            continue
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            continue
        if isinstance(above, ast.Call) and part in above.args and ast.unparse(above.func) in _LOOKING:
            continue
        if isinstance(above, ast.comprehension) and above.iter is part and isinstance(above.target, ast.Name):
            whole = parents[above]
            if above.target.id != name and not list(handed_on(whole, above.target.id)):
                continue
        yield getattr(node, "lineno", 0)
