"""Several views of one tensor, ``x.chunk(2)`` or what a loop over `x` gets: where they are made, and other forms."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from graphwidget.diagnosis.source import syntax

__all__ = ["Pieces", "are_made_by", "pieces_of"]

_MAKERS = ("split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes")
_SIZES = {"split": ("split_size", "split_size_or_sections"), "chunk": ("chunks",)}
_OTHER_DIMENSIONS = ("hsplit", "vsplit", "dsplit")  # which one depends on the tensor
_COPIED_LISTS = ("list", "tuple", "reversed", "iter")
_REPEATABLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.Tuple, ast.UnaryOp, ast.USub)
_MOST_NAMES = 4  # from one name to the next: ``half = row[:2]``, ``rows = list(x)``


@dataclass(frozen=True)
class Pieces:
    """Several views of a tensor.

    Attributes
    ----------
    text, statement
        The text with the expression that makes them, and its statement.
    made
        The expression: a call, or the tensor itself that is gone through.
    whole
        The tensor.
    maker, size, dim
        The method's name, how many or how long they are, and the dimension, as they are written. Empty: unknown, or
        not said.
    """

    text: str
    statement: ast.stmt
    made: ast.expr
    whole: ast.expr
    maker: str = "unbind"
    size: str = ""
    dim: str = "0"

    @property
    def root(self) -> str:
        """The name that the tensor's path begins with; empty: it is the result of a call."""
        node = self.whole
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return node.id if isinstance(node, ast.Name) else ""

    @property
    def is_called(self) -> bool:
        """Whether a call makes them, and not a loop over the tensor or a list of names that it is assigned to."""
        return self.made is not self.whole

    @property
    def by_index(self) -> str:
        """The same views, each made for itself: ``[x[i] for i in range(len(x))]``. Empty: there is no such form."""
        if not all(isinstance(one, (*_REPEATABLE, ast.expr_context)) for one in ast.walk(self.whole)):
            return ""
        x, d = ast.unparse(self.whole), self.dim
        i, k = self._free("i", "at", "index"), self._free("k", "length", "step")
        count = f"len({x})" if d == "0" else f"{x}.shape[{d}]"
        if self.maker == "unbind" and d:
            view = f"{x}[{i}]" if d == "0" else f"{x}.select({d}, {i})"
            return f"[{view} for {i} in range({count})]"
        begin = {"0": "", "1": ":, ", "2": ":, :, ", "-1": "..., "}.get(d)
        if begin is None or not self.size:
            return ""
        if self.maker == "split":
            return f"[{x}[{begin}{i}:{i} + {self.size}] for {i} in range(0, {count}, {self.size})]"
        length = f"-(-{count} // {self.size})"
        return f"[{x}[{begin}{i}:{i} + {k}] for {k} in [{length}] for {i} in range(0, {count}, {k})]"

    def joined(self, name: str) -> str:
        """The whole tensor, computed from a list of its pieces. Empty: unknown."""
        join = "stack" if self.maker == "unbind" else "cat"
        return f"torch.{join}({name}{f', {self.dim}' * (self.dim != '0')})" if self.dim else ""

    def _free(self, *names: str) -> str:
        """The first of some names that the tensor's path does not use."""
        used = syntax.names_in(self.whole)
        return next((name for name in names if name not in used), f"{names[-1]}_")


def are_made_by(node: ast.AST) -> bool:
    """Whether a node is a call that makes several views."""
    return isinstance(node, ast.Call) and syntax.last_name(ast.unparse(node.func)) in _MAKERS


def pieces_of(texts: Sequence[str], line: int, name: str, is_tensor: Callable[[str], bool]) -> Pieces | None:
    """The views of which `name` is one at a line, or a part of one; None: not found.

    Parameters
    ----------
    texts
        The text with the line, and others that may give a value to a name of the module.
    name
        Also an element of a list: ``rows[0]``.
    is_tensor
        Whether a name is known to be a tensor.
    """
    for _ in range(_MOST_NAMES):
        if name.endswith("]"):
            return _held(texts, line, name.split("[", 1)[0], is_tensor)
        found = _binding(texts, line, name)
        if found is None:
            return None
        if not isinstance(found.statement, ast.Assign) or not isinstance(found.target, ast.Name):
            unpacked = isinstance(found.statement, ast.Assign)
            gone = (_unpacked if unpacked else _gone_through)(found.target, found.value, name)
            return _pieces((found.text, *texts), found, gone, is_tensor) if gone is not None else None
        inner = next((one for one in ast.walk(found.value) if are_made_by(one)), None)
        if isinstance(inner, ast.Call):
            return _made_by_call(found, inner)
        root = _root(found.value)
        if root is None:
            return None
        texts, line = (found.text, *texts), found.line
        name = f"{root}[…]" if isinstance(found.value, ast.Subscript) and not is_tensor(root) else root
    return None


@dataclass(frozen=True)
class _Binding:
    """What gives a name its value: a statement, the target with the name in it, and what is given to that."""

    text: str
    statement: ast.stmt
    target: ast.expr
    value: ast.expr

    @property
    def line(self) -> int:
        return self.statement.lineno


def _binding(texts: Sequence[str], line: int, name: str) -> _Binding | None:
    """What gave a name its value at a line of the first text."""
    text = texts[0]
    around = syntax.statements_at(text, line)[-1:]
    for one in (node for statement in around for node in ast.walk(statement) if isinstance(node, ast.comprehension)):
        if name in syntax.names_in(one.target):
            return _Binding(text, around[0], one.target, one.iter)
    own = _function(text, line)
    found = [(text, one) for one in syntax.bindings(text, name, line) if _function(text, one.lineno) is own]
    if not found and syntax.is_from_outside(text, line, name):
        found = [(each, one) for each in texts for one in syntax.assignments(each, name)]
        found = [(each, one) for each, one in found if _function(each, one.lineno) is None]
    text, last = found[-1] if found else (text, None)
    if isinstance(last, ast.For):
        return _Binding(text, last, last.target, last.iter)
    targets = last.targets if isinstance(last, ast.Assign) else []
    target = next((one for one in targets if name in syntax.names_in(one)), None)
    return _Binding(text, last, target, last.value) if isinstance(last, ast.Assign) and target is not None else None


def _pieces(texts: Sequence[str], found: _Binding, gone: ast.expr, is_tensor: Callable[[str], bool]) -> Pieces | None:
    """The views that are the elements of an expression of a statement."""
    gone = _bare(gone)
    if isinstance(gone, ast.Call) and are_made_by(gone):
        return _made_by_call(found, gone)
    if isinstance(gone, ast.Name) and not is_tensor(gone.id):
        return _held(texts, found.line, gone.id, is_tensor)
    made = Pieces(found.text, found.statement, gone, gone)
    return made if made.root and is_tensor(made.root) else replace(made, dim="")


def _held(texts: Sequence[str], line: int, name: str, is_tensor: Callable[[str], bool]) -> Pieces | None:
    """The views that a list or tuple holds."""
    found = _binding(texts, line, name)
    if found is None or not isinstance(found.statement, ast.Assign) or not isinstance(found.target, ast.Name):
        return None
    given = _bare(found.value)
    if isinstance(given, ast.Call) and are_made_by(given):
        return _made_by_call(found, given)
    if given is not found.value and isinstance(given, ast.Name) and is_tensor(given.id):
        return Pieces(found.text, found.statement, given, given)
    return None


def _made_by_call(found: _Binding, call: ast.Call) -> Pieces:
    maker = syntax.last_name(ast.unparse(call.func))
    given, own = list(call.args), isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) != "torch"
    if not own and not given:
        return Pieces(found.text, found.statement, call, call, maker, dim="")
    whole = call.func.value if own and isinstance(call.func, ast.Attribute) else given.pop(0)
    keywords = {one.arg: one.value for one in call.keywords}
    has_size = maker != "unbind"
    sizes = [*given[:1], *(keywords[key] for key in _SIZES.get(maker, ()) if key in keywords)] if has_size else []
    size = ast.unparse(sizes[0]) if sizes and _is_number(sizes[0]) else ""
    dims = [*given[has_size : has_size + 1], *([keywords["dim"]] if "dim" in keywords else [])]
    dim = ast.unparse(dims[0]) if dims else "0"
    return Pieces(found.text, found.statement, call, whole, maker, size, "" if maker in _OTHER_DIMENSIONS else dim)


def _is_number(node: ast.expr) -> bool:
    """Whether an expression surely is one number, and no list of them."""
    computed = isinstance(node, ast.BinOp) and not any(isinstance(n, (ast.List, ast.Tuple)) for n in ast.walk(node))
    return computed or isinstance(node, ast.Constant) and isinstance(node.value, int)


def _function(text: str, line: int) -> ast.FunctionDef | None:
    found = syntax.function_at(text, line)
    return found[1] if found is not None else None


def _bare(node: ast.expr) -> ast.expr:
    """``x.unbind(0)`` of ``list(x.unbind(0))``."""
    while isinstance(node, ast.Call) and ast.unparse(node.func) in _COPIED_LISTS and len(node.args) == 1:
        node = node.args[0]
    return node


def _root(node: ast.expr) -> str | None:
    """The name of which an expression is a part, or a view."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _unpacked(target: ast.expr, value: ast.expr, name: str) -> ast.expr | None:
    """The expression whose elements the names of an assignment get: ``x`` in ``a, b = x``."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    whole = not isinstance(value, (ast.Tuple, ast.List))
    return value if whole and any(ast.unparse(part).lstrip("*") == name for part in parts) else None


def _gone_through(target: ast.expr, value: ast.expr, name: str) -> ast.expr | None:
    """The expression whose elements a loop gives a name: ``x`` in ``for i, (t, m) in enumerate(zip(x, means))``."""
    while not isinstance(target, ast.Name):
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        at = next((i for i, part in enumerate(parts) if name in syntax.names_in(part)), None)
        called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
        given = value.args if isinstance(value, ast.Call) else []
        at_of = at if called == "zip" else 0 if called == "enumerate" and at == 1 else None
        if at is None or at_of is None or at_of >= len(given) or isinstance(given[at_of], ast.Starred):
            return None
        target, value = parts[at], given[at_of]
    return None if isinstance(value, ast.Call) and ast.unparse(value.func) in ("zip", "enumerate") else value
