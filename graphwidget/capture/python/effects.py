"""One pass over the source of a Python function finds its effects on the graph, its arguments and `ctx`."""

from __future__ import annotations

import ast
import builtins
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.python.code_reading import RAISES, WRITES, WRITES_ARGUMENT, Reading
from graphwidget.capture.python.source import UNRESOLVED, Function, comes_from, name_of
from graphwidget.capture.python.values import TENSOR_METHODS, Values

__all__ = ["EffectVisitor", "Parameter"]

DEPTH = 4  # helpers called by helpers

_TORCH_ROOTS = ("torch", "math", "operator", "numpy", "contextlib")
_UNSEEN_TORCH = frozenset({"compile", "checkpoint", "checkpoint_sequential", "vmap", "jit", "script", "trace", "load"})
_HARMLESS_BUILTINS = frozenset(
    "abs all any bool callable dict enumerate float getattr hasattr hash id int isinstance issubclass iter len list "
    "max min pow print range repr reversed round set slice sorted str sum tuple type zip".split()
)
_CONTAINER_METHODS = frozenset(
    name for cls in (list, dict, set, str, tuple) for name in dir(cls) if not name.startswith("_")
)
_TAKES_OUT = ("pop", "popitem", "popleft", "remove")  # a second call may raise
_EFFECTS = {
    "backward": "calls backward itself",
    "register_hook": "registers hooks",
    "register_post_accumulate_grad_hook": "registers hooks",
    "retain_grad": "registers hooks",
    "set_": "replaces the memory of a tensor",
    "resize_": "replaces the memory of a tensor",
}
_CHANGES_GRAD = "changes a tensor's gradient or data"
_NO_TENSOR = (dict, list, set, tuple, int, float, complex, str, bytes)


Parameter = int | str | None  # a position, a keyword, or None: no parameter


class EffectVisitor(ast.NodeVisitor):
    """One pass over a function.

    Parameters
    ----------
    depth
        Number of helpers that called each other down to this one.
    context
        The parameter that receives `ctx`.
    read
        Reads a helper, given the function, the depth and the parameter that receives `ctx`.
    """

    def __init__(
        self,
        function: types.FunctionType,
        tree: Function,
        depth: int,
        context: Parameter,
        read: Callable[[types.FunctionType, int, Parameter], Reading],
    ) -> None:
        self.function, self.tree, self.depth, self.context, self.read = function, tree, depth, context, read
        self.plain = True
        self.effect = ""
        self.reads_saved: bool | None = False
        self.maybe = 0  # number of branches and loops around the current point
        self.skipped = False  # a statement was not visited, and it may return
        self.returned: list[ast.expr | None] = []
        self.helpers: dict[str, types.CodeType] = {}
        self.values = Values(function, tree)
        self.ctx = self._parameter()

    def reading(self) -> Reading:
        """Visit the whole function and return the result."""
        if isinstance(self.tree, ast.Lambda):
            self.returned.append(self.tree.body)
            self.look(self.tree.body)
        else:
            for statement in self.tree.body:
                self.visit(statement)
            if not isinstance(self.tree.body[-1], (ast.Return, ast.Raise)):
                self.returned.append(None)
        plain = self.plain and not self.effect
        returns, exact = self._returns()
        return Reading(plain, self.effect, self.reads_saved, returns, exact, tuple(self.helpers.items()))

    def _parameter(self) -> str:
        """Return the name of the parameter that receives `ctx` (perhaps `*args`); empty if none does."""
        arguments = self.tree.args
        if isinstance(self.context, int):
            names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, arguments.vararg) if a]
            if self.context < len(names):
                return names[self.context]
        elif self.context is None or self.context in self.values.arguments:
            return self.context or ""
        self._may_read()
        return ""

    def _is_ctx(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.ctx

    # -- statements

    def visit_Return(self, node: ast.Return) -> None:
        self.returned.append(node.value)
        self.look(node.value)
        if self.maybe:
            self.maybe += 1  # what follows may not be reached

    def visit_Expr(self, node: ast.Expr) -> None:
        self.look(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.look(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.look(node.value)
        for target in node.targets:
            self._written(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.look(node.value)
        self._written(node.target, in_place=True)

    def visit_If(self, node: ast.If) -> None:
        self.look(node.test)
        self._branch(node.body, node.orelse)

    def visit_For(self, node: ast.For) -> None:
        self.look(node.iter)
        self._branch(node.body, node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self.look(node.test)
        self._branch(node.body, node.orelse)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.look(item.context_expr)
        for inner in node.body:
            self.visit(inner)

    def visit_Raise(self, node: ast.Raise) -> None:
        if self.maybe:
            self.plain = False
        else:
            self._has(RAISES)

    def visit_Try(self, node: ast.Try) -> None:
        self.plain = False
        self._branch(node.body, node.orelse, node.finalbody, *(handler.body for handler in node.handlers))

    def visit_Match(self, node: ast.Match) -> None:
        self.look(node.subject)
        self._perhaps([case.guard for case in node.cases])
        self._branch(*(case.body for case in node.cases))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inner(node, node.body)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.maybe += 1
        self.look(node.test)
        self.maybe -= 1

    def visit_Delete(self, node: ast.Delete) -> None:
        self.plain = self.plain and all(
            isinstance(target, ast.Name) or (isinstance(target, ast.Subscript) and self.values.fresh(target.value))
            for target in node.targets
        )

    def _does_nothing(self, node: ast.stmt) -> None:
        """Visit a statement without an effect on the graph."""

    visit_Pass = visit_Break = visit_Continue = _does_nothing
    visit_Global = visit_Nonlocal = visit_Import = visit_ImportFrom = _does_nothing

    def generic_visit(self, node: ast.AST) -> None:
        """Visit the parts of an expression. A statement that has no method here is not visited."""
        if isinstance(node, ast.stmt):
            self.plain = False
            self.skipped = True
            self._may_read()
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.visit(child)

    def _inner(self, node: ast.FunctionDef | ast.Lambda, body: Sequence[ast.stmt]) -> None:
        """Visit an inner function, which may be called any number of times: its effects make the outer not plain."""
        for value in (*node.args.defaults, *node.args.kw_defaults, *getattr(node, "decorator_list", ())):
            self.look(value)
        returned, effect, maybe = self.returned, self.effect, self.maybe
        self.returned, self.maybe = [], maybe + 1
        for statement in body:
            self.visit(statement)
        if self.effect != effect:
            self.plain = False
        self.returned, self.effect, self.maybe = returned, effect, maybe

    def _branch(self, *bodies: list[ast.stmt]) -> None:
        returns = len(self.returned)
        before = self.maybe
        for body in bodies:
            self.maybe = before + 1
            for inner in body:
                self.visit(inner)
        self.maybe = before + (len(self.returned) > returns)

    def _written(self, target: ast.expr, in_place: bool = False) -> None:
        """Visit a target: assigning to names and containers is harmless, to a tensor created elsewhere a write."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._written(element)
        elif isinstance(target, ast.Starred):
            self._written(target.value)
        elif isinstance(target, ast.Name):
            if in_place:
                self._written_into(target)
        elif isinstance(target, ast.Attribute):
            self._attribute(target.value, target.attr)
            if target.attr in ("grad", "data", "requires_grad"):
                self._has(_CHANGES_GRAD)
            elif in_place:
                self.plain = False  # a number or a tensor
        elif isinstance(target, ast.Subscript):
            self.look(target.value)
            self.look(target.slice)
            self._written_into(target.value)

    def _written_into(self, node: ast.expr) -> None:
        """Record that a statement or a method changes `node` in place."""
        if self.values.fresh(node) or issubclass(type(self.values.stands_for(node)), _NO_TENSOR):
            return
        elements = self.values.elements(node.value) if isinstance(node, ast.Subscript) else None
        if elements is not None and not any(issubclass(type(element), torch.Tensor) for element in elements):
            self.plain = False  # an element of a container that holds no tensor so far
        elif self.values.is_argument(node):
            self._has(WRITES_ARGUMENT)
        else:
            self._has(WRITES)

    # -- expressions

    def look(self, node: ast.expr | None) -> None:
        """Visit an expression, if there is one."""
        if node is not None:
            self.visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._attribute(node.value, node.attr)

    def visit_Name(self, node: ast.Name) -> None:
        if self._is_ctx(node):
            self._may_read()

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.look(node.test)
        self._perhaps([node.body, node.orelse])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        first, *rest = node.values
        self.look(first)
        self._perhaps(rest)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        self.look(node.generators[0].iter)
        self._perhaps(list(ast.iter_child_nodes(node)))

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.plain = False
        self._inner(node, [ast.Expr(node.body)])

    def _suspended(self, node: ast.expr) -> None:
        """Visit a point where the function may be suspended for ever."""
        self.plain = False
        self._may_read()

    visit_Await = visit_Yield = visit_YieldFrom = _suspended

    def _perhaps(self, nodes: list[Any]) -> None:
        self.maybe += 1
        for node in nodes:
            if isinstance(node, ast.comprehension):
                self._perhaps([node.iter, *node.ifs])
            elif isinstance(node, ast.expr):
                self.look(node)
        self.maybe -= 1

    def _attribute(self, owner: ast.expr, name: str) -> None:
        """Visit an attribute. One of `ctx` shows whether saved tensors are read; any other use of `ctx` does not."""
        if name in ("saved_tensors", "saved_variables", ti.RAW_SAVED_TENSORS):
            self._reads()
        if not self._is_ctx(owner) or name.startswith("__"):
            self.look(owner)

    def visit_Call(self, node: ast.Call) -> None:
        callee = self.values.stands_for(node.func)
        arguments: list[ast.expr] = [*node.args, *(k.value for k in node.keywords)]
        name = node.args[1] if callee is getattr and len(node.args) > 1 else None
        if isinstance(name, ast.Constant):
            self._attribute(arguments.pop(0), str(name.value))
        followed = _is_helper(callee)
        for argument in arguments:
            if not (followed and self._is_ctx(_unstarred(argument))):
                self.look(argument)
        if isinstance(node.func, ast.Attribute) and callee is UNRESOLVED:
            self._attribute(node.func.value, node.func.attr)
            self._method(node.func)
        elif self.values.is_grad_call(node):
            if not self._local_grad(node):
                self._has("calls autograd.grad on another graph")
        elif callee is UNRESOLVED or not self._foreseen(node, callee):
            self.plain = False

    def _method(self, node: ast.Attribute) -> None:
        name = node.attr
        if name in _EFFECTS:
            self._has(_EFFECTS[name])
        elif name.endswith("_") and not name.endswith("__"):
            self._written_into(node.value)
        elif name in _TAKES_OUT:
            self.plain = self.plain and self.values.fresh(node.value)
        elif name not in TENSOR_METHODS and name not in _CONTAINER_METHODS:
            self.plain = False
            if self._is_ctx(node.value):
                self._may_read()  # a function stored on `ctx` may refer to `ctx`

    def _foreseen(self, node: ast.Call, callee: Any) -> bool:
        """Whether a forecast can follow a call of a known object; helpers are read as well."""
        name = name_of(callee)
        if _is_helper(callee):
            return self._helper(node, callee)
        if callee is torch.autograd.backward:
            self._has(_EFFECTS["backward"])
            return True
        if getattr(builtins, name, None) is callee:
            return name in _HARMLESS_BUILTINS
        if name.endswith("_") and not name.endswith("__"):
            self._has(WRITES)
            return True
        if name in _UNSEEN_TORCH:
            return False
        native = type(callee) in (types.BuiltinFunctionType, types.MethodDescriptorType)
        return native or comes_from(callee, _TORCH_ROOTS) or getattr(math, name, None) is callee

    def _helper(self, node: ast.Call, callee: types.FunctionType) -> bool:
        at = [i for i, a in enumerate(node.args) if self._is_ctx(_unstarred(a))]
        before = node.args[: at[0]] if at else []
        given: list[Parameter] = [*at, *(k.arg for k in node.keywords if self._is_ctx(k.value))]
        lost = len(given) > 1 or any(isinstance(a, ast.Starred) for a in before)
        if lost or self.depth >= DEPTH or callee is self.function:
            if given:
                self._may_read()
            return False
        self.helpers[ast.unparse(node.func)] = callee.__code__
        read = self.read(callee, self.depth + 1, given[0] if given else None)
        if read.effect and not (read.effect == RAISES and self.maybe):
            self._has(WRITES if read.effect == WRITES_ARGUMENT else read.effect)
        if read.reads_saved:
            self._reads()
        elif read.reads_saved is None and given:
            self._may_read()
        return read.plain or bool(read.effect and self.effect)

    def _local_grad(self, node: ast.Call) -> bool:
        """Whether `autograd.grad` is called for leaves detached here: it runs only newer nodes, not the graph's."""
        inputs = (
            node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "inputs"), None)
        )
        return inputs is not None and self.values.each_fresh(inputs)

    # -- results

    def _reads(self) -> None:
        self.reads_saved = True if not self.maybe or self.reads_saved else None

    def _may_read(self) -> None:
        """Record that `ctx` was passed on to code that is not read."""
        self.reads_saved = self.reads_saved or None

    def _has(self, effect: str) -> None:
        if self.effect in ("", WRITES_ARGUMENT):
            self.effect = effect

    def _is_rest(self, node: ast.expr | None) -> bool:
        """Whether it is the unchanged `args` of ``def backward(ctx, *args)``: a tensor for each gradient."""
        rest = self.tree.args.vararg
        return (
            isinstance(node, ast.Name)
            and rest is not None
            and node.id == rest.arg != self.ctx
            and (self.values.is_never_assigned(node.id))
        )

    def _returns(self) -> tuple[tuple[bool | None, ...] | None, bool]:
        """Return `returns` and `exact` of the reading."""
        displays = [v.elts if isinstance(v, (ast.Tuple, ast.List)) else [v] for v in self.returned]
        rows = [tuple(map(self.values.defined, display)) for display in displays]
        rows = [(True,) if self._is_rest(value) else row for value, row in zip(self.returned, rows, strict=True)]
        starred = any(isinstance(element, ast.Starred) for display in displays for element in display)
        if not rows or self.skipped or starred or any(len(row) != len(rows[0]) for row in rows):
            return None, False
        exact = all(isinstance(value, ast.Tuple) or self.values.is_one(value) for value in self.returned)
        return tuple(column[0] if len(set(column)) == 1 else None for column in zip(*rows, strict=True)), exact


def _is_helper(value: Any) -> bool:
    return type(value) is types.FunctionType and not comes_from(value, _TORCH_ROOTS)


def _unstarred(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node
