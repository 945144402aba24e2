"""What a term of a loss is computed from, where all of it has left the graph: ``beta * (pred != y).float().mean()``.

The text is followed back from the term through names, functions and methods. A term is known as a constant only if
the text accounts for all of it: each way ends at plain numbers, or at an operation that leaves the graph.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.bindings import is_empty, of_attribute, put
from graphwidget.diagnosis.no_graph.cutting import index_of_a_pair, indices_only, is_library, what_is_cut
from graphwidget.diagnosis.no_graph.values import LAYER, Spot, Values, is_plain
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import CellRun

__all__ = ["Left", "Term", "Trains", "history", "term"]

_MOST = 400  # expressions that are followed for one term
_MOST_GIVEN = 50  # values of a coefficient
_MOST_BESIDE = 3000  # that are followed for all others
_PURPOSES = ("detach", "detach_", "sample", "multinomial")
_NUMBERS = ("float", "int", "round")
_FORMS = ("shape", "dtype", "device", "ndim", "size", "numel", "dim", "len", "range", "grad")
_BUILTINS = frozenset(name for name in dir(builtins) if name[:1].islower())

# Whether what a path at a line stands for is trained: a leaf, or, if the third is true, a module with such leaves.
# None: it is neither.
Trains = Callable[[str, Spot, bool], bool | None]


class Left(NamedTuple):
    """An operation that leaves the graph: its statement, how, its expression, and what it is applied to."""

    run: CellRun
    statement: ast.stmt
    by: str
    node: ast.AST
    given: tuple[ast.expr, ...]


class _Call(NamedTuple):
    """A call through which a function was entered: what it passes decides on the function's arguments."""

    function: ast.FunctionDef
    node: ast.Call
    spot: Spot
    within: _Call | None


class _Step(NamedTuple):
    """An expression on the way back. `left`: the last operation, on that way, that leaves the graph; None: none does.

    `element`: of the tuple that it returns only that one counts.
    """

    node: ast.AST
    spot: Spot
    called: _Call | None = None
    left: Left | None = None
    element: int | None = None


@dataclass
class Term:
    """What a term is computed from.

    `cuts` left the graph behind something that is trained. `other`: it may have a graph. `meant`: something says that
    it is meant to have none: ``detach``, a block without grad mode.
    """

    cuts: list[Left] = field(default_factory=list)
    other: bool = False
    meant: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether it surely is a constant, was computed from what is trained, and is not said to be meant so."""
        return bool(self.cuts) and not self.other and not self.meant


def term(values: Values, root: ast.expr, spot: Spot, trains: Trains) -> Term:
    """Return what an expression at a line is computed from."""
    return _Walk(values, trains).follow(root, spot)


def history(values: Values, roots: list[ast.expr], spot: Spot, without: ast.expr) -> set[int] | None:
    """The ids of all expressions that some were computed from, indices and conditions among them; None: too many.

    Parameters
    ----------
    without
        An expression that is not followed: what a loop adds to a sum is in the sum when it is added again.
    """
    own = {(id(without), False), (id(without), True)}
    walk = _Walk(values, lambda path, at, module: None, whole=True, seen=set(own))
    for root in roots:
        walk.follow(root, spot)
    return None if walk.too_many else {at for at, _ in walk.seen - own}


@dataclass
class _Walk:
    """One walk back. `whole`: it follows what leaves the graph, too, whatever it is."""

    values: Values
    trains: Trains
    whole: bool = False
    too_many: bool = False
    found: Term = field(default_factory=Term)
    seen: set[tuple[int, bool]] = field(default_factory=set)

    def follow(self, root: ast.expr, spot: Spot) -> Term:
        queue = [_Step(root, spot)]
        for step in queue:
            key = (id(step.node), step.left is not None)
            if key in self.seen or not 0 <= step.spot.at < len(self.values.runs):
                continue
            self.seen.add(key)
            if len(self.seen) > (_MOST_BESIDE if self.whole else _MOST):
                self.found.other = self.too_many = True
                break
            queue += self._below(step)
        return self.found

    def _unknown(self, step: _Step) -> None:
        """A way ends at something that may have a graph; behind a cut that does not matter."""
        if step.left is None:
            self.found.other = True

    def _ends_at(self, node: ast.expr, step: _Step, *, called: bool) -> bool:
        """Whether a way ends at a leaf, or at a module with leaves. Only one that is `called` computes with them."""
        path = self._path(node, step)
        leaf, module = (self.trains(path, step.spot, any_below) for any_below in (False, True))
        trained = module if called else leaf
        if module is not None:
            self._unknown(step)
        if trained and step.left is not None and step.left not in self.found.cuts:
            self.found.cuts.append(step.left)
        return module is not None

    # ------------------------------------------------------------------ one step back

    def _below(self, step: _Step) -> Iterator[_Step]:
        node, spot = step.node, step.spot
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            return
        statement = self._statement(step)
        if statement is not None and self.values.switch_around(spot.at, statement) is not None:
            self.found.meant = True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and not self.whole:
            self.found.meant |= any(self._may_be_zero(step._replace(node=one)) for one in (node.left, node.right))
        cut = _cut_of(node)
        if cut is not None and statement is not None:
            by, given = cut
            self.found.meant |= by in _PURPOSES
            left = Left(self.values.runs[spot.at], statement, by, node, tuple(given))
            yield from (step._replace(node=one, left=left, element=None) for one in given)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield from self._of_name(node, step)
        elif isinstance(node, ast.Call):
            yield from self._of_call(node, step)
        elif isinstance(node, ast.Subscript):
            yield step._replace(node=node.value, element=None)
            if self.whole:
                yield step._replace(node=node.slice, element=None)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            yield step._replace(node=node.elt, element=None)
        elif isinstance(node, (ast.Tuple, ast.List)) and step.element is not None:
            yield from (step._replace(node=one, element=None) for one in node.elts[step.element : step.element + 1])
        elif isinstance(node, (ast.Lambda, ast.DictComp, ast.SetComp, ast.Await, ast.Yield, ast.NamedExpr)):
            self._unknown(step)
        else:
            skipped = node.test if isinstance(node, ast.IfExp) and not self.whole else None
            parts = (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr) and one is not skipped)
            yield from (step._replace(node=one, element=None) for one in parts)

    def _statement(self, step: _Step) -> ast.stmt | None:
        line = getattr(step.node, "lineno", step.spot.line)
        return next(reversed(source.statements_at(self.values.runs[step.spot.at].source, line)), None)

    def _of_name(self, node: ast.Name | ast.Attribute, step: _Step) -> Iterator[_Step]:
        text = ast.unparse(node)
        if isinstance(node, ast.Attribute) and node.attr in _FORMS:
            return
        if self._ends_at(node, step, called=False):
            return
        passed = self._passed(text, step) if isinstance(node, ast.Name) else None
        if passed is not None:
            yield from passed
            return
        made = self._made(node, step)
        if not made and isinstance(node, ast.Attribute) and not is_library(node):
            if self._class_of(node.value, step) is not None:
                self._unknown(step)
            else:
                yield step._replace(node=node.value, element=None)
        elif not made and not is_library(node):
            self._unknown(step)
        for at, one in made:
            yield from self._of_binding(text, one, step._replace(spot=at))

    def _made(self, node: ast.Name | ast.Attribute, step: _Step) -> list[tuple[Spot, ast.AST]]:
        """What bound a name or an attribute; for an argument of a function its default, too."""
        made = self.values.made(ast.unparse(node), step.spot)
        if isinstance(node, ast.Attribute):
            return made or self._of_attribute(node, step)
        inside = source.function_at(self.values.runs[step.spot.at].source, step.spot.line)
        if inside is None or any(isinstance(one, ast.stmt) for _, one in made):
            return made
        default = _default(inside[1], node.id)
        return [*made, (step.spot, default)] if default is not None else made

    def _of_binding(self, name: str, one: ast.AST, step: _Step) -> Iterator[_Step]:
        added = put(one, name)
        if isinstance(one, ast.expr):
            yield step._replace(node=one)
        elif added:
            yield from (step._replace(node=part, element=None) for part in added)
        elif isinstance(one, ast.Assign) and indices_only(one, name):
            left = Left(self.values.runs[step.spot.at], one, "indices", one, (one.value,))
            yield step._replace(node=one.value, left=left, element=None)
        elif isinstance(one, ast.Assign):
            value, element = source.given_to(one, name)
            if not is_empty(value):
                yield step._replace(node=value, element=element)
        elif isinstance(one, (ast.AugAssign, ast.AnnAssign)) and one.value is not None:
            yield step._replace(node=one.value)
            if isinstance(one, ast.AugAssign):
                yield step._replace(node=one.target, spot=Spot(step.spot.at, one.lineno))
        elif isinstance(one, ast.For):
            yield step._replace(node=one.iter, element=None)
        else:
            self._unknown(step)

    def _passed(self, name: str, step: _Step) -> list[_Step] | None:
        """What the call through which a function was entered passes as an argument; None: the name is none."""
        inside = source.function_at(self.values.runs[step.spot.at].source, step.spot.line)
        called = step.called
        if called is None or inside is None or inside[1] is not called.function or name == "self":
            return None
        own = called.function.args
        places = [one.arg for one in (*own.posonlyargs, *own.args)]
        if name not in (*places, *(one.arg for one in own.kwonlyargs)):
            return None
        if any(isinstance(one, ast.expr) is False for _, one in self.values.made(name, step.spot)):
            return None  # it has another value since
        bound = places[1:] if inside[0] is not None and places[:1] == ["self"] else places
        given = [k.value for k in called.node.keywords if k.arg == name]
        given += called.node.args[bound.index(name) : bound.index(name) + 1] if name in bound else []
        outside = [_Step(one, called.spot, called.within, step.left, step.element) for one in given[:1]]
        if outside:
            return outside
        default = _default(called.function, name)
        return [step._replace(node=default)] if default is not None else None

    def _path(self, node: ast.expr, step: _Step) -> str:
        """The path of an expression, seen from where a function's argument comes from: ``net.fc`` for ``m.fc``."""
        text = ast.unparse(node)
        first, _, rest = text.partition(".")
        while first.isidentifier() and first != "self":
            passed = self._passed(first, step)
            if passed is None or not isinstance(passed[0].node, (ast.Name, ast.Attribute)):
                break
            step = passed[0]
            first = ast.unparse(step.node)
            text = f"{first}.{rest}" if rest else first
            if "." in first:
                break
        root = source.expression_of(text)
        return self.values.module(root, step.spot) or text if root is not None else text

    def _may_be_zero(self, factor: _Step) -> bool:
        """Whether a coefficient is given as 0 somewhere: then the term is switched off, or waits."""
        queue, seen = [factor], set[int]()
        for step in queue:
            node = step.node
            if id(node) in seen or len(seen) > _MOST_GIVEN:
                continue
            seen.add(id(node))
            if isinstance(node, ast.Constant):
                if not node.value:
                    return True
            elif isinstance(node, ast.IfExp):
                queue += [step._replace(node=one) for one in (node.body, node.orelse)]
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                queue += self._entries(step._replace(node=node.value), node.slice.value)
            elif isinstance(node, (ast.Name, ast.Attribute)):
                queue += self._values_of(node, step)
        return False

    def _values_of(self, node: ast.Name | ast.Attribute, step: _Step) -> list[_Step]:
        """The expressions that give a name its whole value; none where something is added to it."""
        passed = self._passed(node.id, step) if isinstance(node, ast.Name) else None
        if passed is not None:
            return passed
        made = self._made(node, step)
        if any(isinstance(one, (ast.AugAssign, ast.For)) for _, one in made):
            return []
        values = [(at, source.given(one) if isinstance(one, (ast.Assign, ast.AnnAssign)) else one) for at, one in made]
        return [step._replace(node=one, spot=at) for at, one in values if isinstance(one, ast.expr)]

    def _entries(self, holder: _Step, key: object, deep: int = 4) -> Iterator[_Step]:
        """What a dictionary that is written out holds under a key."""
        node = holder.node
        if isinstance(node, ast.Dict):
            for name, held in zip(node.keys, node.values):
                if isinstance(name, ast.Constant) and name.value == key:
                    yield holder._replace(node=held)
        elif isinstance(node, (ast.Name, ast.Attribute)) and deep:
            for one in self._values_of(node, holder):
                yield from self._entries(one, key, deep - 1)

    # ------------------------------------------------------------------ calls

    def _of_call(self, node: ast.Call, step: _Step) -> Iterator[_Step]:
        called = ast.unparse(node.func)
        last = source.last_name(called)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        given = [one.value if isinstance(one, ast.Starred) else one for one in given]
        arguments = (step._replace(node=one, element=None) for one in given)
        asks = any(k.arg == "requires_grad" for k in node.keywords)
        if last in _FORMS or last.endswith("_like") or (last.startswith("new_") and not asks):
            self.found.other |= last == "grad"
            return
        layer = LAYER.search(ast.unparse(node.func.func) if isinstance(node.func, ast.Call) else called)
        if last in ("Parameter", "apply", "requires_grad_") or asks or (layer is not None and not is_plain(layer[1])):
            self._unknown(step)
            yield from arguments
            return
        functions = list(self._functions(node, step))
        if functions:
            for at, function in functions:
                entered = _Call(function, node, step.spot, step.called)
                returned = self.values.returned(function)
                if not returned or _deep(entered) > 8:
                    self._unknown(step)
                for value in returned:
                    yield _Step(value, Spot(at, value.lineno), entered, step.left, step.element)
            return
        if self._ends_at(node.func, step, called=True):
            return
        yield from arguments
        if isinstance(node.func, ast.Attribute):
            if not is_library(node.func.value):
                yield step._replace(node=node.func.value, element=None)
        elif layer is None and not self._is_plain(node.func, step):
            self._unknown(step)

    def _is_plain(self, func: ast.expr, step: _Step) -> bool:
        """Whether what is called computes from its arguments alone: a builtin, a loss of torch, a tensor's type."""
        made = self.values.made(ast.unparse(func), step.spot)
        if not made:
            return isinstance(func, ast.Name) and func.id in _BUILTINS
        values = [source.given(one) for _, one in made if isinstance(one, ast.Assign)]
        layers = [LAYER.search(ast.unparse(one.func)) for one in values if isinstance(one, ast.Call)]
        return len(layers) == len(made) and all(one is not None and is_plain(one[1]) for one in layers)

    def _functions(self, node: ast.Call, step: _Step) -> Iterator[tuple[int, ast.FunctionDef]]:
        """The functions of the program that a call may run, each with the index of its run."""
        func = node.func
        if isinstance(func, ast.Name):
            for at, one in self.values.made(func.id, step.spot):
                if isinstance(one, ast.FunctionDef):
                    yield at.at, one
        holder, wanted = (func.value, (func.attr,)) if isinstance(func, ast.Attribute) else (func, ())
        for base, names in ((holder, wanted), (func, ("forward", "__call__"))):
            cls = self._class_of(base, step) if names else None
            own = [one for one in cls[1].body if isinstance(one, ast.FunctionDef)] if cls is not None else []
            found = [one for one in own if one.name in names]
            if cls is not None and found:
                yield from ((cls[0], one) for one in found)
                return

    def _class_of(self, node: ast.expr, step: _Step, deep: int = 4) -> tuple[int, ast.ClassDef] | None:
        """The class of the program of which an expression is an object, with the index of its run."""
        if isinstance(node, ast.Name) and node.id == "self":
            inside = source.function_at(self.values.runs[step.spot.at].source, step.spot.line)
            return (step.spot.at, inside[0]) if inside is not None and inside[0] is not None else None
        if not isinstance(node, (ast.Name, ast.Attribute)) or not deep:
            return None
        passed = self._passed(node.id, step) if isinstance(node, ast.Name) else None
        made = [(one.spot, one.node, one) for one in passed or ()]
        made = made or [(at, one, step._replace(spot=at)) for at, one in self.values.made(ast.unparse(node), step.spot)]
        for at, one, there in made:
            value = source.given_to(one, ast.unparse(node))[0] if isinstance(one, ast.Assign) else one
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SAME:
                value = value.func.value
            if isinstance(value, ast.Call):
                for where, cls in self.values.made(ast.unparse(value.func), at):
                    if isinstance(cls, ast.ClassDef):
                        return where.at, cls
            elif isinstance(value, (ast.Name, ast.Attribute)) and value is not node:
                return self._class_of(value, there, deep - 1)
        return None

    def _of_attribute(self, node: ast.Attribute, step: _Step) -> list[tuple[Spot, ast.AST]]:
        """What the class of an object gives to an attribute of it."""
        cls = self._class_of(node.value, step)
        found = of_attribute(cls[1], f"self.{node.attr}") if cls is not None else []
        return [(Spot(cls[0], getattr(one, "lineno", 1)), one) for one in found] if cls is not None else []


_SAME = ("to", "cuda", "cpu", "train", "eval", "double", "float")


def _default(function: ast.FunctionDef, name: str) -> ast.expr | None:
    """The default of an argument of a function."""
    own = function.args
    names = [one.arg for one in (*own.posonlyargs, *own.args)]
    found: dict[str, ast.expr | None] = dict(zip(names[::-1], own.defaults[::-1]))
    found |= {one.arg: value for one, value in zip(own.kwonlyargs, own.kw_defaults)}
    return found.get(name)


def _deep(called: _Call | None) -> int:
    count = 0
    while called is not None:
        called, count = called.within, count + 1
    return count


def _cut_of(node: ast.AST) -> tuple[str, list[ast.expr]] | None:
    """How an expression leaves the graph, whatever it is applied to, and what that is."""
    if isinstance(node, ast.Compare):
        return "comparison", [node.left, *node.comparators]
    if index_of_a_pair(node) and isinstance(node, (ast.Subscript, ast.Attribute)):
        return "indices", [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NUMBERS:
        return node.func.id, list(node.args)
    return what_is_cut(node)
