"""What NumPy computes of an array, written as what torch computes of the tensor that the array was taken from."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from graphwidget.diagnosis.fixes.as_tensors import in_numpy

__all__ = ["PACKING", "Known", "Written", "is_taking", "may_be_array", "packed", "taken", "write"]

PACKING = ("from_numpy", "tensor", "as_tensor", "asarray", "Tensor", "FloatTensor")
_OF_TORCH_ALONE = ("from_numpy", "tensor", "as_tensor", "Tensor", "FloatTensor")  # no other package has such a name
_FILLED = {"full": "ones", "full_like": "ones_like"}  # torch takes the number out of a tensor that is to fill another
_OUT = ("numpy", "item", "tolist")
_ON_THE_WAY = (*_OUT, "detach", "cpu")
# Functions of NumPy and of `math`, and methods of arrays: how torch calls what computes the same in the same way.
_SAME = frozenset(
    "sin cos tan tanh sinh cosh arctan exp expm1 log log1p log2 log10 sqrt abs sign square mean sum prod where matmul "
    "outer einsum reshape stack vstack hstack squeeze flip diff zeros_like ones_like clip isnan linalg.norm linalg.det "
    "linalg.inv linalg.solve".split()
)
_OTHERWISE = {
    "max": "amax",
    "min": "amin",
    "amax": "amax",
    "amin": "amin",
    "absolute": "abs",
    "fabs": "abs",
    "power": "pow",
    "concatenate": "cat",
    "expand_dims": "unsqueeze",
    "dot": "matmul",
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "negative": "neg",
    "std": "std",
    "var": "var",
    "ravel": "flatten",
}
_BOUNDS = {"maximum": "min", "minimum": "max"}  # the argument of `clamp` that a number becomes
_METHODS = {
    **dict.fromkeys(("mean", "sum", "prod", "reshape", "flatten", "squeeze", "clip"), ""),
    "max": "amax",
    "min": "amin",
    "copy": "clone",
    "ravel": "flatten",
    "std": "std",
    "var": "var",
}
_SPREAD = ("std", "var")  # of which torch divides by one less, unless it is told otherwise
_KEYWORDS = {"axis": "dim", "keepdims": "keepdim"}
_TYPES = {"float": "float32", "float32": "float32", "float64": "float64", "double": "float64"}


class Written(NamedTuple):
    """An expression written with tensors.

    `array`: its value was an array or number, and is a tensor now. `tensor`: a tensor was made of such a one in it.
    `lacking`: what torch has no counterpart of, as it is written. `calls`: functions of the program that get one.
    """

    node: ast.expr
    array: bool
    tensor: bool
    lacking: tuple[str, ...]
    calls: tuple[tuple[str, tuple[int, ...]], ...]


class Known(NamedTuple):
    """What is known of other names of a program.

    `own`: its functions, and whether they return an array that is to be a tensor where they are given one. `making`:
    the last names of those that return one that they take themselves. `arrays`: variables that NumPy has made.
    `properties`: those that return one, as they are read: ``self.shape``.
    """

    own: Mapping[str, bool]
    making: Collection[str]
    arrays: Collection[str]
    properties: Collection[str] = ()


def is_taking(node: ast.AST) -> bool:
    """Whether a node takes an array or a number out of a tensor: ``x.detach().numpy()``, ``float(loss)``."""
    if not isinstance(node, ast.Call):
        return False
    if ast.unparse(node.func) == "float":
        return len(node.args) == 1 and not isinstance(node.args[0], (ast.Constant, ast.JoinedStr))
    return isinstance(node.func, ast.Attribute) and node.func.attr in _OUT and not node.args


_KINDS = {"numpy": "array", "tolist": "list"}  # of what is taken; by anything else, a number


def taken(nodes: Iterable[ast.AST]) -> str:
    """What some nodes take out of tensors, in words: ``a number``, ``arrays``, ``numbers and an array``."""
    takes = (ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call) and is_taking(node))
    kinds = Counter(_KINDS.get(name.rpartition(".")[2], "number") for name in takes)
    shown = [f"{kind}s" if n > 1 else f"a{'n' if kind == 'array' else ''} {kind}" for kind, n in kinds.items()]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def packed(node: ast.AST) -> ast.expr | None:
    """What a call makes a tensor of; None: it makes none."""
    if not isinstance(node, ast.Call) or not node.args or in_numpy(node):
        return None
    if isinstance(node.func, ast.Name):
        return node.args[0] if node.func.id in _OF_TORCH_ALONE else None
    module = node.func.value if isinstance(node.func, ast.Attribute) else None  # `th` of ``th.tensor(x)``
    if not isinstance(module, ast.Name) or module.id in ("self", "cls"):
        return None
    last = ast.unparse(node.func).rpartition(".")[2]
    if last in _FILLED:
        return _filling(node)
    return node.args[0] if last in PACKING else None


def _filling(node: ast.Call) -> ast.expr | None:
    """``k`` of ``torch.full((n,), k)``."""
    named = (one.value for one in node.keywords if one.arg == "fill_value")
    return node.args[1] if len(node.args) == 2 else next(named, None)


def may_be_array(node: ast.expr, arrays: Collection[str]) -> bool:
    """Whether NumPy makes a value, or a part or a method of such a one does: ``np.load(f)[:, 0]``."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        if in_numpy(node):
            return not in_numpy(node).endswith((".shape", ".size"))
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "dtype"):
            return False
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return any(may_be_array(one, arrays) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))
    return isinstance(node, ast.Name) and node.id in arrays


def write(node: ast.expr, names: Collection[str], lists: Collection[str], known: Known) -> Written:
    """Write an expression with tensors.

    Parameters
    ----------
    names
        Variables that hold an array or number which is to be a tensor.
    lists
        Of these, those that are lists.
    """
    writer = _Writer(frozenset(names), frozenset(lists), known)
    new = writer.visit(copy.deepcopy(node))
    return Written(new, writer.is_array(new), writer.made, tuple(dict.fromkeys(writer.lacking)), tuple(writer.calls))


class _Writer(ast.NodeTransformer):
    """Writes calls, the inner ones first. Nodes whose value was an array are marked."""

    def __init__(self, names: frozenset[str], lists: frozenset[str], known: Known) -> None:
        self._names, self._lists, self._known = names, lists, known
        self.made = False
        self.lacking: list[str] = []
        self.calls: list[tuple[str, tuple[int, ...]]] = []

    # -- what is an array

    def is_array(self, node: ast.AST) -> bool:
        """Whether the value of a written node was an array."""
        if getattr(node, "ended", False):
            return False  # a tensor was made of it there
        if isinstance(node, (ast.Name, ast.Attribute)):
            known = getattr(node, "array", False) or ast.unparse(node) in self._names
            return known or (isinstance(node, ast.Attribute) and node.attr == "T" and self.is_array(node.value))
        if isinstance(node, ast.Subscript):
            return self.is_array(node.value)
        if isinstance(node, (ast.BinOp, ast.UnaryOp)) and not isinstance(getattr(node, "op", None), ast.Not):
            return any(self.is_array(one) for one in ast.iter_child_nodes(node))
        if isinstance(node, ast.IfExp):
            return self.is_array(node.body) or self.is_array(node.orelse)
        if isinstance(node, (ast.List, ast.Tuple)):
            return any(map(self.is_array, node.elts))
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.is_array(node.elt)
        return bool(getattr(node, "array", False))

    def _as_array(self, node: ast.expr) -> ast.expr:
        node.array = True  # type: ignore[attr-defined]
        return node

    def _is_list(self, node: ast.AST) -> bool:
        return ast.unparse(node) in self._lists or isinstance(node, (ast.List, ast.ListComp))

    # -- what is written

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """A comprehension over arrays: its variable is one."""
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._comprehension(node)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        before = self._names
        for loop in node.generators:
            loop.iter = self.visit(loop.iter)
            if self.is_array(loop.iter):
                self._names |= {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
        node.elt = self.visit(node.elt)
        if self.is_array(node.elt):
            self._as_array(node.elt)
        self._names = before
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Arithmetic: beside a tensor an array of NumPy cannot stand."""
        self.generic_visit(node)
        if self.is_array(node.left) != self.is_array(node.right):
            node.left, node.right = self._beside(node.left), self._beside(node.right)
        return node

    def _beside(self, node: ast.expr) -> ast.expr:
        """An operand beside a tensor: what NumPy makes, and a variable that may hold an array, as a tensor."""
        if self.is_array(node) or not may_be_array(node, self._known.arrays):
            return node
        return _call("torch.as_tensor", [node])

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """A property that returns an array is called where it is read."""
        self.generic_visit(node)
        name = ast.unparse(node)
        if name not in self._known.properties:
            return node
        self.calls.append((name, ()))
        return self._as_array(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write one call with tensors."""
        self.generic_visit(node)
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        given = [one.value if isinstance(one, ast.Starred) else one for one in node.args]
        some = [at for at, one in enumerate(given) if self.is_array(one)]
        if is_taking(node):
            value = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
                if value.func.attr not in _ON_THE_WAY:
                    break
                value = value.func.value
            value = value.value if isinstance(value, ast.Attribute) and value.attr == "data" else value
            return self._as_array(value)
        if (made := packed(node)) is not None:
            return self._packing(node, made) if self.is_array(made) else node
        if (name in ("sum", "abs") and some) or (name in ("max", "min") and some and len(given) > 1):
            return self._as_array(node)  # Python's own functions take tensors
        if name == "max" or name == "min" or (in_numpy(node) and some) or (name.startswith("math.") and some):
            return self._function(node, name.partition(".")[2] or name) if some else node
        if isinstance(node.func, ast.Attribute) and self.is_array(node.func.value):
            return self._method(node, node.func)
        if some and name in self._known.own:
            self.calls.append((name, tuple(some)))
            node.args = [self._beside(one) for one in node.args]
            return self._as_array(node) if self._known.own[name] else node
        if last in self._known.making:
            self.calls.append((name, ()))
            return self._as_array(node)
        return node

    def _packing(self, node: ast.Call, made: ast.expr) -> ast.expr:
        """``x`` of ``torch.from_numpy(x)``, of a list a stack; a type and a device are kept."""
        self.made = True
        last = ast.unparse(node.func).rpartition(".")[2]
        if last in _FILLED:
            rest = [one for one in node.keywords if one.arg != "fill_value"]
            ones = ast.Call(_path(f"torch.{_FILLED[last]}"), node.args[:1], rest)
            return self._ended(ast.BinOp(made, ast.Mult(), ones))
        kept = {one.arg: one.value for one in node.keywords if one.arg in ("dtype", "device")}
        value = self._stacked(made) if self._is_list(made) else made
        to = [kept[one] for one in ("device", "dtype") if one in kept]
        return self._ended(ast.Call(ast.Attribute(value, "to", ast.Load()), to, []) if to else value)

    def _ended(self, node: ast.expr) -> ast.expr:
        new = copy.deepcopy(node)
        new.ended = True  # type: ignore[attr-defined]
        return new

    def _stacked(self, node: ast.expr) -> ast.expr:
        """A list as a stack; what else is written in it is made tensors, as no number can be stacked."""
        if not isinstance(node, ast.List) or any(isinstance(one, ast.Starred) for one in node.elts):
            return _call("torch.stack", [node])
        parts = [
            self._stacked(one) if isinstance(one, ast.List) else one if self.is_array(one) else _as_tensor(one)
            for one in node.elts
        ]
        return _call("torch.stack", [ast.List(parts, ast.Load())])

    def _function(self, node: ast.Call, last: str) -> ast.expr:
        """A function of NumPy or `math`, by torch's."""
        if last in ("array", "asarray", "float32", "float64", "stack") and self._is_list(node.args[0]):
            return self._as_array(_call("torch.stack", node.args))
        if last in ("array", "asarray", "float32", "float64", "atleast_1d", "copy", "ascontiguousarray"):
            return self._as_array(node.args[0])
        keywords = [ast.keyword(_KEYWORDS.get(one.arg or "", one.arg), one.value) for one in node.keywords]
        args = [
            _call("torch.stack", [one]) if self._is_list(one) and last != "concatenate" else one for one in node.args
        ]
        if last in ("maximum", "minimum", "max", "min") and len(args) == 2:
            numbers = [one for one in args if _is_number(one)]
            if last in _BOUNDS and numbers:
                rest = next(one for one in args if one not in numbers)
                bound = ast.keyword(_BOUNDS[last], numbers[0])
                return self._as_array(ast.Call(_path("torch.clamp"), [rest], [bound]))
            if last in _BOUNDS:
                return self._as_array(_call(f"torch.{last}", [self._tensor(one) for one in args]))
        name = last if last in _SAME else _OTHERWISE.get(last)
        if name is None or any(one.arg in ("out", "dtype", "where", "ddof", "order") for one in keywords):
            self.lacking.append(ast.unparse(node.func))
            return self._as_array(node)
        if name in _SPREAD:
            keywords.append(ast.keyword("correction", ast.Constant(0)))
        args = [self._tensor(one) if at and last in ("dot", "matmul", "power") else one for at, one in enumerate(args)]
        if len(args) > 1 and last in ("mean", "sum", "max", "min", "std", "var", "prod"):
            args, keywords = args[:1], [ast.keyword("dim", args[1]), *keywords]
        return self._as_array(ast.Call(_path(f"torch.{name}"), args, keywords))

    def _tensor(self, node: ast.expr) -> ast.expr:
        return node if self.is_array(node) or _is_number(node) else _call("torch.as_tensor", [node])

    def _method(self, node: ast.Call, function: ast.Attribute) -> ast.expr:
        """A method of an array, by that of a tensor."""
        if function.attr == "astype" and len(node.args) == 1:
            kind = ast.unparse(node.args[0]).rpartition(".")[2].strip("'\"")
            if kind in _TYPES:
                to = ast.Attribute(function.value, "to", ast.Load())
                return self._as_array(ast.Call(to, [_path(f"torch.{_TYPES[kind]}")], []))
            return node  # whole numbers have no derivative
        new = _METHODS.get(function.attr)
        if new is None or any(one.arg in ("out", "dtype", "where", "ddof", "order") for one in node.keywords):
            return node
        keywords = [ast.keyword(_KEYWORDS.get(one.arg or "", one.arg), one.value) for one in node.keywords]
        if function.attr in _SPREAD:
            keywords.append(ast.keyword("correction", ast.Constant(0)))
        name = new or function.attr
        return self._as_array(ast.Call(ast.Attribute(function.value, name, ast.Load()), node.args, keywords))


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, (int, float))


def _as_tensor(node: ast.expr) -> ast.expr:
    return _call("torch.as_tensor", [node])


def _path(name: str) -> ast.expr:
    return ast.parse(name, mode="eval").body


def _call(name: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(_path(name), args, [])
