"""What Python code inside the graph would do: read from its source, never run.

A custom Function's backward, a hook, an unpack hook and a checkpointed function are Python; a forecast
can be definite about a node that runs them only if the code is *plain*: arithmetic on tensors, calls
of torch and harmless builtins, writes into tensors that it made itself. What it is seen to do otherwise
is an *effect* ("calls backward itself"); a call of something that cannot be looked into makes it merely
not plain. Also read: whether it surely reads `ctx.saved_tensors`, and which gradients it returns as None. That it
never reads them is only said where `ctx` was followed everywhere: handed to code that is not read, or kept, it may be.

Caveats: a tensor method is known by its name only; code that raises because of the values it meets counts as plain.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import types
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from graphwidget.capture.python.source import UNRESOLVED, Function, code_of, comes_from, name_of, resolve, tree_of
from graphwidget.capture.python.values import TENSOR_METHODS, Values

__all__ = ["WRITES_ARGUMENT", "Reading", "materializes_grads", "read_backward", "read_function"]

_DEPTH = 4  # helpers called by helpers

_TORCH_ROOTS = ("torch", "math", "operator", "numpy", "contextlib")
_UNSEEN_TORCH = frozenset({"compile", "checkpoint", "checkpoint_sequential", "vmap", "jit", "script", "trace", "load"})
_HARMLESS_BUILTINS = frozenset(
    "abs all any bool callable dict enumerate float getattr hasattr hash id int isinstance issubclass iter len list "
    "max min pow print range repr reversed round set slice sorted str sum tuple type zip".split()
)
_CONTAINER_METHODS = frozenset(
    name for cls in (list, dict, set, str, tuple) for name in dir(cls) if not name.startswith("_")
)
_TAKES_OUT = ("pop", "popitem", "popleft", "remove")  # the second time it may raise
_EFFECTS = {
    "backward": "calls backward itself",
    "register_hook": "registers hooks",
    "register_post_accumulate_grad_hook": "registers hooks",
    "retain_grad": "registers hooks",
    "set_": "replaces the memory of a tensor",
    "resize_": "replaces the memory of a tensor",
}
_RAISES = "raises"
_WRITES = "writes into a tensor in place"
WRITES_ARGUMENT = "writes into its argument in place"  # the effect that counts least: any other is named instead
_CHANGES_GRAD = "changes a tensor's gradient or data"
_NO_TENSOR = (dict, list, set, tuple, int, float, complex, str, bytes)


@dataclass(frozen=True)
class Reading:
    """What was read. The defaults are what is known of code that cannot be read.

    Attributes
    ----------
    plain
        Nothing it does can surprise.
    effect
        What it was seen to do that nobody can foresee; then it is not plain either.
    reads_saved
        Whether it reads `ctx.saved_tensors`: surely, never, or None.
    returns
        Per returned value, whether it is a tensor if all arguments are (None: cannot be known); None: not even that.
    exact
        It returns just as many values as `returns` has, whatever happens.
    helpers
        The functions that it calls, by the names it calls them, with the code they had when it was read: once a name
        stands for other code, it has to be read again.
    """

    plain: bool = False
    effect: str = ""
    reads_saved: bool | None = None
    returns: tuple[bool | None, ...] | None = None
    exact: bool = False
    helpers: tuple[tuple[str, types.CodeType], ...] = ()


_UNREAD = Reading()
_Parameter = int | str | None  # by position, by keyword, or there is none
_read: weakref.WeakKeyDictionary[types.FunctionType, dict[_Parameter, Reading]] = weakref.WeakKeyDictionary()


def read_backward(cls: type) -> Reading:
    """Read the backward of a custom Function, or its `vjp`, through `once_differentiable` and `torch.library`."""
    base = torch.autograd.Function
    backward: Any = getattr(cls, "backward", None)
    vjp: Any = getattr(cls, "vjp", None)
    if vjp not in (None, base.vjp):
        if backward is not base.backward:
            return Reading(effect=_RAISES, reads_saved=False)  # torch accepts only one of them
        backward = vjp
    while _is_torch_wrapper(backward):
        backward = backward.__wrapped__
    formula = _formula_of_operator(backward)
    return read_function(backward) if formula is None else replace(read_function(formula), exact=False)


def _formula_of_operator(backward: Any) -> Any:
    """What `torch.library.register_autograd` was given, for the backward that it makes; None for any other."""
    if type(backward) is not types.FunctionType or backward.__module__ != "torch._library.autograd":
        return None
    return getattr(resolve(backward, "info"), "_backward_fn", None)


def materializes_grads(cls: type) -> bool:
    """Whether undefined gradients reach the backward as zeros (nothing in the class says otherwise)."""
    for name in ("forward", "setup_context"):
        code = getattr(getattr(cls, name, None), "__code__", None)
        if code is not None and "set_materialize_grads" in code.co_names:
            return False
    return True


def read_function(function: Any, depth: int = 0, context: _Parameter = 0) -> Reading:
    """Read a function, method, lambda or partial. Anything else, and code without source, is unread.

    `context` is the parameter that `ctx` is passed for.
    """
    if type(function) is functools.partial:
        function = function.func
    function = getattr(function, "__func__", function) if type(function) is types.MethodType else function
    if type(function) is not types.FunctionType:
        return _UNREAD
    known = _read.setdefault(function, {}).get(context)
    if known is not None and all(code_of(resolve(function, name)) is code for name, code in known.helpers):
        return known
    tree = tree_of(function.__code__)
    result = _UNREAD if tree is None else _Visitor(function, tree, depth, context).reading()
    _read[function][context] = result
    return result


def _is_torch_wrapper(function: Any) -> bool:
    return (
        type(function) is types.FunctionType
        and hasattr(function, "__wrapped__")
        and "torch/autograd" in function.__code__.co_filename.replace("\\", "/")
    )


@dataclass
class _Visitor:
    """One pass over a function. `depth` counts helpers, `maybe` the branches and loops around the current point."""

    function: types.FunctionType
    tree: Function
    depth: int
    context: _Parameter
    plain: bool = True
    effect: str = ""
    reads_saved: bool | None = False
    maybe: int = 0
    skipped: bool = False  # a statement that was not looked into, and may return
    returned: list[ast.expr | None] = field(default_factory=list)
    helpers: dict[str, types.CodeType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = Values(self.function, self.tree)
        self.ctx = self._parameter()

    def reading(self) -> Reading:
        if isinstance(self.tree, ast.Lambda):
            self.returned.append(self.tree.body)
            self.look(self.tree.body)
        else:
            for statement in self.tree.body:
                self.statement(statement)
            if not isinstance(self.tree.body[-1], (ast.Return, ast.Raise)):
                self.returned.append(None)
        plain = self.plain and not self.effect
        returns, exact = self._returns()
        return Reading(plain, self.effect, self.reads_saved, returns, exact, tuple(self.helpers.items()))

    def _parameter(self) -> str:
        """The name under which `ctx` comes, perhaps as the first of `*args`; empty if it does not."""
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

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Return):
            self.returned.append(node.value)
            self.look(node.value)
            if self.maybe:
                self.maybe += 1  # what follows may not be reached
        elif isinstance(node, (ast.Expr, ast.AnnAssign)):
            self.look(node.value)
        elif isinstance(node, ast.Assign):
            self.look(node.value)
            for target in node.targets:
                self._written(target)
        elif isinstance(node, ast.AugAssign):
            self.look(node.value)
            self._written(node.target, in_place=True)
        elif isinstance(node, ast.If):
            self.look(node.test)
            self._branch(node.body, node.orelse)
        elif isinstance(node, (ast.For, ast.While)):
            self.look(node.iter if isinstance(node, ast.For) else node.test)
            self._branch(node.body, node.orelse)
        elif isinstance(node, ast.With):
            for item in node.items:
                self.look(item.context_expr)
            for inner in node.body:
                self.statement(inner)
        elif isinstance(node, ast.Raise):
            if self.maybe:
                self.plain = False
            else:
                self._has(_RAISES)
        elif isinstance(node, ast.Try):
            self.plain = False
            self._branch(node.body, node.orelse, node.finalbody, *(handler.body for handler in node.handlers))
        elif isinstance(node, ast.Match):
            self.look(node.subject)
            self._perhaps([case.guard for case in node.cases])
            self._branch(*(case.body for case in node.cases))
        elif isinstance(node, ast.FunctionDef):
            self._inner(node, node.body)
        elif isinstance(node, ast.Assert):
            self.maybe += 1
            self.look(node.test)
            self.maybe -= 1
        elif isinstance(node, ast.Delete):
            self.plain = self.plain and all(
                isinstance(target, ast.Name) or (isinstance(target, ast.Subscript) and self.values.fresh(target.value))
                for target in node.targets
            )
        elif not isinstance(
            node, (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)
        ):
            self.plain = False
            self.skipped = True
            self._may_read()

    def _inner(self, node: ast.FunctionDef | ast.Lambda, body: Sequence[ast.stmt]) -> None:
        """A function made here, which may be called any number of times: calling it makes this one not plain."""
        for value in (*node.args.defaults, *node.args.kw_defaults, *getattr(node, "decorator_list", ())):
            self.look(value)
        returned, effect, maybe = self.returned, self.effect, self.maybe
        self.returned, self.maybe = [], maybe + 1
        for statement in body:
            self.statement(statement)
        if self.effect != effect:
            self.plain = False
        self.returned, self.effect, self.maybe = returned, effect, maybe

    def _branch(self, *bodies: list[ast.stmt]) -> None:
        returns = len(self.returned)
        before = self.maybe
        for body in bodies:
            self.maybe = before + 1
            for inner in body:
                self.statement(inner)
        self.maybe = before + (len(self.returned) > returns)

    def _written(self, target: ast.expr, in_place: bool = False) -> None:
        """A target of an assignment: harmless for names and containers, a write for tensors that are not its own."""
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
        """What is changed in place by a statement or a method."""
        if self.values.fresh(node) or issubclass(type(self.values.stands_for(node)), _NO_TENSOR):
            return
        elements = self.values.elements(node.value) if isinstance(node, ast.Subscript) else None
        if elements is not None and not any(issubclass(type(element), torch.Tensor) for element in elements):
            self.plain = False  # an element of a container: no tensor, so far
        elif self.values.is_argument(node):
            self._has(WRITES_ARGUMENT)
        else:
            self._has(_WRITES)

    # -- expressions

    def look(self, node: ast.expr | None) -> None:
        if node is None:
            return
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Attribute):
            self._attribute(node.value, node.attr)
        elif self._is_ctx(node):
            self._may_read()
        elif isinstance(node, (ast.IfExp, ast.BoolOp)):
            first, *rest = [node.test, node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
            self.look(first)
            self._perhaps(rest)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            self.look(node.generators[0].iter)
            self._perhaps(list(ast.iter_child_nodes(node)))
        elif isinstance(node, ast.Lambda):
            self.plain = False
            self._inner(node, [ast.Expr(node.body)])
        elif isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom)):
            self.plain = False
            self._may_read()
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.look(child)

    def _perhaps(self, nodes: list[Any]) -> None:
        self.maybe += 1
        for node in nodes:
            if isinstance(node, ast.comprehension):
                self._perhaps([node.iter, *node.ifs])
            elif isinstance(node, ast.expr):
                self.look(node)
        self.maybe -= 1

    def _attribute(self, owner: ast.expr, name: str) -> None:
        """An attribute: the one use of `ctx` that tells by itself whether what was saved is read."""
        if name in ("saved_tensors", "saved_variables", "_raw_saved_tensors"):
            self._reads()
        if not self._is_ctx(owner) or name.startswith("__"):
            self.look(owner)

    def _call(self, node: ast.Call) -> None:
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
                self._may_read()  # a function that was kept on it may hold it as well

    def _foreseen(self, node: ast.Call, callee: Any) -> bool:
        """Whether a call of something known can surprise; helpers are read as well."""
        name = name_of(callee)
        if _is_helper(callee):
            return self._helper(node, callee)
        if callee is torch.autograd.backward:
            self._has(_EFFECTS["backward"])
            return True
        if getattr(builtins, name, None) is callee:
            return name in _HARMLESS_BUILTINS
        if name.endswith("_") and not name.endswith("__"):
            self._has(_WRITES)
            return True
        if name in _UNSEEN_TORCH:
            return False
        native = type(callee) in (types.BuiltinFunctionType, types.MethodDescriptorType)
        return native or comes_from(callee, _TORCH_ROOTS) or getattr(math, name, None) is callee

    def _helper(self, node: ast.Call, callee: types.FunctionType) -> bool:
        at = [i for i, a in enumerate(node.args) if self._is_ctx(_unstarred(a))]
        before = node.args[: at[0]] if at else []
        given: list[_Parameter] = [*at, *(k.arg for k in node.keywords if self._is_ctx(k.value))]
        lost = len(given) > 1 or any(isinstance(a, ast.Starred) for a in before)
        if lost or self.depth >= _DEPTH or callee is self.function:
            if given:
                self._may_read()
            return False
        self.helpers[ast.unparse(node.func)] = callee.__code__
        read = read_function(callee, self.depth + 1, given[0] if given else None)
        if read.effect and not (read.effect == _RAISES and self.maybe):
            self._has(_WRITES if read.effect == WRITES_ARGUMENT else read.effect)
        if read.reads_saved:
            self._reads()
        elif read.reads_saved is None and given:
            self._may_read()
        return read.plain or bool(read.effect and self.effect)

    def _local_grad(self, node: ast.Call) -> bool:
        """`autograd.grad` of leaves detached here runs only nodes made since: it cannot touch the graph."""
        inputs = (
            node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "inputs"), None)
        )
        return inputs is not None and self.values.each_fresh(inputs)

    # -- what is told of it

    def _reads(self) -> None:
        self.reads_saved = True if not self.maybe or self.reads_saved else None

    def _may_read(self) -> None:
        """`ctx` went where it cannot be followed."""
        self.reads_saved = self.reads_saved or None

    def _has(self, effect: str) -> None:
        if self.effect in ("", WRITES_ARGUMENT):
            self.effect = effect

    def _is_rest(self, node: ast.expr | None) -> bool:
        """Whether it is `args` of ``def backward(ctx, *args)``, just as it came: a tensor for each gradient."""
        rest = self.tree.args.vararg
        return (
            isinstance(node, ast.Name)
            and rest is not None
            and node.id == rest.arg != self.ctx
            and (self.values.is_never_assigned(node.id))
        )

    def _returns(self) -> tuple[tuple[bool | None, ...] | None, bool]:
        """What is known of each returned value, and whether they are surely that many."""
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
