"""Static knowledge of the values in a Python function: the objects that names refer to, the tensors it creates.

An answer about a name holds for all values that the function ever assigns to it, in any order.
"""

from __future__ import annotations

import ast
import types
from typing import Any

import torch

from graphwidget.capture.python.source import UNRESOLVED, Function, comes_from, member, name_of, resolve

__all__ = ["TENSOR_METHODS", "Values"]

TENSOR_METHODS = frozenset(name for name in dir(torch.Tensor) if not name.startswith("__"))
_OWN_RESULT = ("clone", "detach", "contiguous")  # `.detach()` shares memory, but not the history
_MAKERS = ("zeros", "ones", "empty", "full", "rand", "dict", "list", "new_")  # prefixes of their names


class Values:
    """The values in one function.

    Attributes
    ----------
    arguments
        The names of its arguments, without those of `*args` and `**kwargs`.
    """

    def __init__(self, function: types.FunctionType, tree: Function) -> None:
        given = tree.args
        self.arguments = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        self._function = function
        code = function.__code__
        self._locals = {*code.co_varnames, *code.co_cellvars}  # names of imports and caught exceptions, too
        self._assigned: dict[str, list[ast.expr | None]] = {}  # None: the value is unknown
        if not isinstance(tree, ast.Lambda):
            self._collect(tree.body)

    def _collect(self, body: list[ast.stmt]) -> None:
        """Collect every assignment to a local name, to distinguish tensors created here from others."""
        for node in ast.walk(ast.Module(body=body, type_ignores=[])):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assign(target, node.value)
            elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                self._assign(node.target, node.value)
            elif isinstance(node, (ast.For, ast.comprehension)):
                self._assign(node.target, None)
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                self._assign(node.optional_vars, None)
            elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.FunctionDef)) and node.name:
                self._assigned.setdefault(node.name, []).append(None)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                self._assigned.setdefault(node.rest, []).append(None)

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Starred):
            self._assign(target.value, None)
        elif isinstance(target, ast.Name):
            self._assigned.setdefault(target.id, []).append(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            whole = value if self.is_grad_call(value) else None
            if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
                whole = value.elt  # each name gets one of the elements
            for i, element in enumerate(target.elts):
                self._assign(element, values[i] if len(values) == len(target.elts) else whole)

    # -- the object that an expression refers to

    def stands_for(self, node: ast.expr) -> Any:
        """Return the object that a global name or a module's attribute refers to; `UNRESOLVED` if unknown."""
        if isinstance(node, ast.Name):
            if node.id in self._locals or node.id in self._assigned:
                return UNRESOLVED
            return resolve(self._function, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.stands_for(node.value)
            return owner if owner is UNRESOLVED else member(owner, node.attr)
        return UNRESOLVED

    def elements(self, node: ast.expr) -> list[Any] | None:
        """Return the present elements of a list or dict that has a name; None for other expressions."""
        container = self.stands_for(node)
        if issubclass(type(container), dict):
            return list(dict.values(container))
        return list.copy(container) if issubclass(type(container), list) else None

    def is_never_assigned(self, name: str) -> bool:
        """Whether the function never assigns to this name, so that an argument keeps its value."""
        return name not in self._assigned

    def is_argument(self, node: ast.expr) -> bool:
        """Whether an expression is an unchanged argument of the function."""
        return isinstance(node, ast.Name) and node.id in self.arguments and node.id not in self._assigned

    def is_grad_call(self, node: ast.expr | None) -> bool:
        """Whether an expression is a call of `autograd.grad`."""
        return isinstance(node, ast.Call) and self.stands_for(node.func) is torch.autograd.grad

    # -- whether the function created it

    def fresh(self, node: ast.expr, depth: int = 3) -> bool:
        """Whether the function created the tensor, so that no node of the graph can have saved it."""
        if isinstance(node, ast.Name):
            values = self._assigned.get(node.id)
            return bool(values) and depth > 0 and all(v is not None and self.fresh(v, depth - 1) for v in values or ())
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Constant, ast.Compare, ast.Dict, ast.List, ast.ListComp)):
            return True
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in _OWN_RESULT:
                return True
            if node.func.attr.endswith("_"):
                return self.fresh(node.func.value, depth - 1)
        return name_of(self.stands_for(node.func)).startswith(_MAKERS)

    def each_fresh(self, node: ast.expr, depth: int = 3) -> bool:
        """Whether the function created a tensor, or every element of a list or tuple of tensors."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(self.each_fresh(element, depth) for element in node.elts)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.fresh(node.elt)
        if isinstance(node, ast.Name):
            values = self._assigned.get(node.id)
            return (
                bool(values)
                and depth > 0
                and all(v is not None and self.each_fresh(v, depth - 1) for v in values or ())
            )
        return self.fresh(node)

    # -- whether it is a tensor

    def defined(self, node: ast.expr | None, depth: int = 3) -> bool | None:
        """Return whether an expression is a tensor: True, or False if it is the value None, or None if unknown."""
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return False
        if isinstance(node, (ast.BinOp, ast.UnaryOp)):
            return None if self._is_sequence(node) else True
        if isinstance(node, ast.IfExp):
            both = {self.defined(node.body, depth), self.defined(node.orelse, depth)}
            return both.pop() if len(both) == 1 else None
        if isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute) and node.func.attr in TENSOR_METHODS
            torch_function = comes_from(self.stands_for(node.func), ("torch",))
            return True if method or torch_function or self.is_grad_call(node) else None
        if isinstance(node, ast.Name) and depth:
            if node.id in self.arguments[1:]:
                return True if node.id not in self._assigned else None
            values = {
                self.defined(v, depth - 1) if v is not None else None for v in self._assigned.get(node.id, [None])
            }
            return values.pop() if len(values) == 1 else None
        return None

    def is_one(self, node: ast.expr | None) -> bool:
        """Whether an expression surely is no tuple: it is None, or arithmetic on a gradient passed as an argument."""
        if isinstance(node, ast.BinOp):
            return self.is_one(node.left) or self.is_one(node.right)
        if isinstance(node, ast.Name):
            return node.id in self.arguments[1:] and node.id not in self._assigned
        return node is None or (isinstance(node, ast.Constant) and node.value is None)

    def _is_sequence(self, node: ast.expr | None, depth: int = 3) -> bool:
        """Whether an expression may be a tuple or list that the function builds."""
        if isinstance(node, ast.BinOp):
            return self._is_sequence(node.left, depth) or self._is_sequence(node.right, depth)
        if isinstance(node, ast.Name) and depth:
            return any(self._is_sequence(value, depth - 1) for value in self._assigned.get(node.id, ()))
        return isinstance(node, (ast.Tuple, ast.List, ast.ListComp))
