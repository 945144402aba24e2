"""Code that takes Python numbers out of tensors, written so that it computes with the tensors."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator

from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.model import TextEdit

__all__ = ["edits", "makes_tensor", "replacements", "taken_by"]

_OF_TORCH = frozenset(
    "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p sqrt pow "
    "hypot erf erfc lgamma ldexp fmod floor ceil trunc".split()
)
_OTHERWISE = {"fabs": "abs"}
_STACK = ast.Attribute(ast.Name("torch", ast.Load()), "stack", ast.Load())
_PACKING = ("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor")


def taken_by(statement: ast.AST) -> list[str]:
    """What takes numbers out of tensors in a statement, as it is written: ``math.sin``, ``float``, ``item``."""
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return list(dict.fromkeys(name for call in calls if (name := _taking(call))))


def makes_tensor(statement: ast.AST) -> bool:
    """Whether a statement makes a tensor of numbers."""
    return any(isinstance(node, ast.Call) and _packed(node) is not None for node in ast.walk(statement))


def replacements(text: str, statement: ast.AST) -> list[str]:
    """What an edit would do, as parts of a sentence."""
    found = []
    for name in taken_by(statement):
        new = _in_torch(name)
        found.append(f"`{new}` in place of `{name}`" if new else f"no `{name}`")
    calls = [node for node in _outermost(statement) if _packed(node) is not None]
    if calls:
        made = [_Computing(text).visit(copy.deepcopy(one)) for one in calls]
        new = "torch.stack" if any("torch.stack" in ast.unparse(one) for one in made) else "torch.as_tensor"
        found.append(f"`{new}` in place of `{ast.unparse(calls[0].func)}`")
    return found


def edits(cell: int | None, text: str, statement: ast.stmt) -> Edits:
    """Write a statement with tensors; none where something in it has no counterpart."""
    found: list[TextEdit] = []
    for call in _outermost(statement):
        new = _Computing(text).visit(copy.deepcopy(call))
        found += text_edit.replace_node(cell, text, call, _in_brackets(new))
    return tuple(found)


def _outermost(node: ast.AST) -> Iterator[ast.Call]:
    """The calls to be replaced that are inside of no other."""
    if isinstance(node, ast.Call) and (_taking(node) or _packed(node) is not None):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(child)


def _taking(call: ast.Call) -> str:
    name = ast.unparse(call.func)
    given = any(not isinstance(one, ast.Constant) for one in call.args)
    if (name == "float" or _in_torch(name)) and given:
        return name
    return "item" if isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args else ""


def _in_torch(name: str) -> str:
    library, _, last = name.rpartition(".")
    last = _OTHERWISE.get(last, last)
    return f"torch.{last}" if library == "math" and last in {*_OF_TORCH, *_OTHERWISE.values()} else ""


def _packed(call: ast.Call) -> ast.expr | None:
    """What a call makes a tensor of."""
    return call.args[0] if ast.unparse(call.func) in _PACKING and len(call.args) == 1 else None


class _Computing(ast.NodeTransformer):
    """Replaces calls, the inner ones first. `text`: what shows which names are lists."""

    def __init__(self, text: str) -> None:
        self._text = text

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write one call with tensors."""
        self.generic_visit(node)
        name, packed = _taking(node), _packed(node)
        if packed is not None:
            dtype = [one.value for one in node.keywords if one.arg == "dtype"]
            new = self._stacked(packed)
            return ast.Call(ast.Attribute(new, "to", ast.Load()), dtype, []) if dtype else new
        if name == "float":
            return node.args[0]
        if name == "item" and isinstance(node.func, ast.Attribute):
            return node.func.value
        if name:
            function = ast.parse(_in_torch(name), mode="eval").body
            given = [_as_tensor(node.args[0]), *node.args[1:]]
            return ast.Call(function, [*map(_as_tensor, given)] if len(given) > 1 else given, [])
        return node

    def _stacked(self, node: ast.expr) -> ast.expr:
        if isinstance(node, (ast.List, ast.Tuple)):
            inner = (one if _is_value(one) else self._stacked(one) for one in node.elts)
            parts = [_as_tensor(one) if isinstance(one, ast.Constant) else one for one in inner]
            return ast.Call(_STACK, [ast.List(parts, ast.Load())], [])
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            elt = node.elt if _is_value(node.elt) else self._stacked(node.elt)
            return ast.Call(_STACK, [ast.ListComp(elt, node.generators)], [])
        return ast.Call(_STACK, [node], []) if _is_list(self._text, node) else _as_tensor(node)


def _is_value(node: ast.expr) -> bool:
    """Whether an element of a list is no list itself."""
    return not isinstance(node, (ast.List, ast.Tuple, ast.ListComp))


def _is_list(text: str, node: ast.expr) -> bool:
    """Whether the text makes a list under this name, or puts something into it."""
    name = re.escape(ast.unparse(node))
    return bool(re.search(rf"(?<![\w.]){name}(\s*(:[^=\n]+)?=\s*\[|\.append\()", text))


def _as_tensor(node: ast.expr) -> ast.expr:
    """The same value as a tensor, with the graph that it has."""
    known = isinstance(node, ast.Call) and ast.unparse(node.func).startswith("torch.")
    return node if known else ast.Call(ast.parse("torch.as_tensor", mode="eval").body, [node], [])


def _in_brackets(node: ast.expr) -> str:
    """The text of an expression, which may stand in place of a call."""
    plain = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return ast.unparse(node) if plain else f"({ast.unparse(node)})"
