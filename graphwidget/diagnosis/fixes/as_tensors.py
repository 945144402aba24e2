"""Code that takes Python numbers out of tensors, written so that it computes with the tensors."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.model import TextEdit

__all__ = ["edits", "in_numpy", "lacking", "makes_tensor", "replacements", "taken_by"]

_OF_TORCH = frozenset(
    "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p sqrt pow "
    "hypot erf erfc lgamma ldexp fmod floor ceil trunc".split()
)
_OTHERWISE = {"fabs": "abs"}
_STACK = ast.Attribute(ast.Name("torch", ast.Load()), "stack", ast.Load())
_PACKING = ("tensor", "as_tensor", "Tensor", "FloatTensor", "from_numpy")
# Functions of NumPy that torch has under the same name, and what is called otherwise there.
_MAKING = frozenset({"zeros", "ones", "full", "empty"})
_OF_NUMPY = (
    _OF_TORCH
    | _MAKING
    | frozenset("abs sum mean prod square sign maximum minimum where matmul dot outer zeros_like ones_like".split())
)
_LISTED = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)
_STACKING = ("array", "asarray", "stack")
_WAYS_OUT = ("detach", "cpu", "numpy", "tolist")


def taken_by(statement: ast.AST) -> list[str]:
    """What takes numbers out of tensors in a statement, as it is written: ``math.sin``, ``float``, ``item``."""
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return list(dict.fromkeys(name for call in calls if (name := _taking(call))))


def in_numpy(node: ast.AST) -> str:
    """A call of NumPy as it is written: ``np.exp``; empty: it is none."""
    name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return name if re.fullmatch(r"(np|numpy)(\.\w+)+", name) else ""


def makes_tensor(statement: ast.AST) -> bool:
    """Whether a statement makes a tensor of numbers."""
    return any(isinstance(node, ast.Call) and _packed(node) is not None for node in ast.walk(statement))


def replacements(text: str, statement: ast.AST, *, arrays: bool = False) -> list[str]:
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
    for name in filter(None, map(in_numpy, ast.walk(statement))) if arrays else ():
        new = _counterpart(name)
        found.append(f"`{new}` in place of `{name}`" if new else f"no `{name}`")
    return found


def lacking(statement: ast.AST) -> bool:
    """Whether a statement computes by a function of NumPy that torch does not have."""
    return any(name and not _counterpart(name) for name in map(in_numpy, ast.walk(statement)))


def edits(cell: int | None, text: str, statement: ast.stmt, *, arrays: bool = False) -> Edits:
    """Write a statement with tensors; none where something in it has no counterpart.

    `arrays`: also what NumPy computes there.
    """
    found: list[TextEdit] = []
    if arrays and lacking(statement):
        return ()
    for call in _outermost(statement, arrays):
        new = _Computing(text).visit(copy.deepcopy(call))
        if in_numpy(call) and isinstance(new, ast.Call) and ast.unparse(_given(new)) == ast.unparse(_given(call)):
            found += text_edit.replace_node(cell, text, call.func, ast.unparse(new.func))
        else:
            found += text_edit.replace_node(cell, text, call, syntax.in_brackets(new))
    return tuple(found)


def _given(call: ast.Call) -> ast.Call:
    return ast.Call(ast.Name("f", ast.Load()), call.args, call.keywords)


def _outermost(node: ast.AST, arrays: bool = False) -> Iterator[ast.Call]:
    """The calls to be replaced that are inside of no other."""
    if isinstance(node, ast.Call) and (_taking(node) or _packed(node) is not None or (arrays and in_numpy(node))):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(child, arrays)


def _counterpart(name: str) -> str:
    """The function of torch that does what one of NumPy does, called in the same way; empty: there is none."""
    last = name.partition(".")[2]
    return "torch.stack" if last in _STACKING else f"torch.{last}" if last in _OF_NUMPY else ""


def _taking(call: ast.Call) -> str:
    name = ast.unparse(call.func)
    given = any(not isinstance(one, ast.Constant) for one in call.args)
    if (name == "float" or _in_torch(name)) and given:
        return name
    out = isinstance(call.func, ast.Attribute) and not call.args and call.func.attr in ("item", "numpy")
    return ast.unparse(call.func).rsplit(".", 1)[-1] if out else ""


def _in_torch(name: str) -> str:
    library, _, last = name.rpartition(".")
    last = _OTHERWISE.get(last, last)
    return f"torch.{last}" if library == "math" and last in {*_OF_TORCH, *_OTHERWISE.values()} else ""


def _packed(call: ast.Call) -> ast.expr | None:
    """What a call makes a tensor of."""
    return call.args[0] if syntax.last_name(ast.unparse(call.func)) in _PACKING and len(call.args) == 1 else None


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
        if name in ("item", "numpy") and isinstance(node.func, ast.Attribute):
            return _computed(node.func.value)
        if in_numpy(node):
            return self._in_torch(node)
        if name:
            function = ast.parse(_in_torch(name), mode="eval").body
            given = [_as_tensor(node.args[0]), *node.args[1:]]
            return ast.Call(function, [*map(_as_tensor, given)] if len(given) > 1 else given, [])
        return node

    def _in_torch(self, node: ast.Call) -> ast.expr:
        """What NumPy computes, by torch. A table takes the kind of numbers that is torch's own."""
        function = ast.parse(_counterpart(in_numpy(node)), mode="eval").body
        if ast.unparse(function) == "torch.stack":
            return (
                self._stacked(node.args[0]) if isinstance(node.args[0], _LISTED) else ast.Call(function, node.args, [])
            )
        kept = [one for one in node.keywords if one.arg != "dtype"]
        given = [self._stacked(one) if isinstance(one, _LISTED) else one for one in node.args]
        making = ast.unparse(function).rpartition(".")[2] in _MAKING
        return ast.Call(function, node.args if making else given, kept)

    def _stacked(self, node: ast.expr) -> ast.expr:
        if isinstance(node, (ast.List, ast.Tuple)):
            inner = (one if _is_value(one) else self._stacked(one) for one in node.elts)
            parts = [_as_tensor(one) if isinstance(one, ast.Constant) else one for one in inner]
            return ast.Call(_STACK, [ast.List(parts, ast.Load())], [])
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            elt = node.elt if _is_value(node.elt) else self._stacked(node.elt)
            return ast.Call(_STACK, [ast.ListComp(elt, node.generators)], [])
        return ast.Call(_STACK, [node], []) if _is_list(self._text, node) else _as_tensor(node)


def _computed(node: ast.expr) -> ast.expr:
    """What was taken out of the graph: ``x`` of ``x.detach().cpu()``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WAYS_OUT:
        node = node.func.value
    return node


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
