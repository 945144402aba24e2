"""Whether values had a graph, as far as the text of the cells and the measurements at an error prove it.

Answers are True, False or None: it surely has a graph, it surely has none, it is unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from graphwidget.diagnosis.fixes.rerun.rerun import Rerun
from graphwidget.diagnosis.no_graph.bindings import is_empty, put
from graphwidget.diagnosis.no_graph.cutting import (
    LIBRARIES,
    PLAIN,
    any_of,
    cuts_in,
    index_of_a_pair,
    indices_only,
    is_library,
    is_scored,
    outside_of_cuts,
    what_is_cut,
)
from graphwidget.diagnosis.no_graph.values import LAYER, Spot, Values, is_plain
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import CellRun

_MAKING = {
    *("zeros", "ones", "rand", "randn", "randint", "randperm", "full", "arange", "linspace", "empty", "eye"),
    *("zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "empty_like", "from_numpy", "one_hot"),
}


class Kept(NamedTuple):
    """A statement that made something once, for all calls, and the edit after which each call makes it."""

    run: CellRun
    statement: ast.stmt
    plan: Rerun


class Cut(NamedTuple):
    """A statement that makes a value without a graph from one that (if `sure`) had one."""

    run: CellRun
    statement: ast.stmt
    by: str  # `detach`, or the `no_grad` that is around it
    around: ast.stmt | None
    sure: bool
    alone: bool  # whether the statement has no other
    calls: frozenset[str]  # what is called inside
    switched: CellRun | None = None  # the cell of `around`, where that is another one
    kept: Kept | None = None  # inside of `around`, what made the value once and keeps it


@dataclass
class Origins:
    """Whether the values of a notebook had a graph, up to a call, and where it was cut."""

    values: Values
    _open: set[int] = field(default_factory=set)
    _lifted: ast.stmt | None = None  # a block without grad mode, for the question what there would be without it
    _whole: bool = False  # for the question what something goes back to: what it is itself does not answer that

    def passes_graph(self, node: ast.expr, spot: Spot) -> bool | None:
        """The same as `has_graph` of an argument. A module is no tensor: it hands no graph on."""
        return False if self.values.is_module(ast.unparse(node), spot) else self.has_graph(node, spot)

    # ------------------------------------------------------------------ whether it had a graph

    def has_graph(self, node: ast.AST, spot: Spot) -> bool | None:
        """Whether the value of an expression had a graph, or is a leaf that requires grad."""
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Compare)) or index_of_a_pair(node):
            return False
        if what_is_cut(node) is not None:
            return _asked_for_grad(node)
        if isinstance(node, ast.Name):
            return self._of_name(node.id, spot)
        if isinstance(node, ast.Call):
            return self._of_call(node, spot)
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            if node.attr in ("grad", "shape", "dtype", "device"):
                return False
            known = self._of_name(text, spot) if text.startswith("self.") or self._assigned(text, spot) else None
            return known if known is not None or text.startswith("self.") else self.has_graph(node.value, spot)
        if isinstance(node, ast.Subscript):
            return self.has_graph(node.value, spot)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self._of_loop(node, spot)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred, ast.IfExp)):
            skipped = node.test if isinstance(node, ast.IfExp) else None
            parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr) and one is not skipped]
            return any_of(self.has_graph(part, spot) for part in parts)
        return None

    def goes_back_to_grad(self, root: ast.expr, spot: Spot) -> bool | None:
        """Whether something behind an expression requires grad, even if the graph to it is cut.

        False only if no measured value requires grad: the text may not show everything.
        """
        values = [one for sight in self.values.scene.sights for one in sight.values.values()]
        if any(self.values.modules.values()) or any(one.requires_grad for one in values):
            return None
        self._whole = True
        try:
            return self.has_graph(root, spot)
        finally:
            self._whole = False

    def _of_loop(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, spot: Spot) -> bool | None:
        """A comprehension: its element, with what its loops iterate over in place of their variables."""
        over = {name: loop.iter for loop in node.generators for name in source.names_in(loop.target)}
        called = [
            self.values.trains(self.values.module(n.func, spot), spot)
            for n in _calls(node.elt)
            if not is_library(n.func)
        ]
        if True in called:
            return True
        read = source.names_in(node.elt)
        plain = not called and what_is_cut(node.elt) is None
        if read and read <= set(over) and plain:
            return any_of(self.has_graph(over[name], spot) for name in sorted(read))
        return False if what_is_cut(node.elt) is not None else None

    def _assigned(self, text: str, spot: Spot) -> bool:
        return any(isinstance(s, ast.stmt) and text in source.targets(s) for _, s in self.values.made(text, spot))

    def _of_name(self, name: str, spot: Spot) -> bool | None:
        value = self.values.measured(name, spot)
        if value is not None and value.kind == "tensor" and self._lifted is None and not self._whole:
            return value.requires_grad
        if name in self.values.modules:
            return self.values.modules[name]
        found = self.values.made(name, spot)
        answers: list[bool | None] = []
        for where, one in found:
            if id(one) in self._open:
                continue
            self._open.add(id(one))
            filled = isinstance(one, ast.stmt) and is_empty(source.given(one)) and any(put(s, name) for _, s in found)
            answers.append(False if filled else self._of_binding(name, one, where))
            self._open.discard(id(one))
        return any_of(answers) if found else None

    def _of_binding(self, name: str, one: ast.AST, spot: Spot) -> bool | None:
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            return None
        if isinstance(one, ast.expr):
            return self.has_graph(one, spot)
        if isinstance(one, ast.stmt):
            switch = self.values.switch_around(spot.at, one)
            if switch is not None and switch.outer is not self._lifted:
                return False if switch.off else None
            if indices_only(one, name):
                return False
            taken_in = put(one, name)
            if taken_in:
                return any_of(self.has_graph(part, spot) for part in taken_in)
            if is_empty(source.given(one)):
                return None  # who filled it, and with what, is unknown
            value = self.has_graph(source.given(one), spot)
            return any_of((value, self._of_name(name, spot))) if isinstance(one, ast.AugAssign) else value
        return None

    def _of_call(self, node: ast.Call, spot: Spot) -> bool | None:
        called = ast.unparse(node.func)
        root, last = called.split(".", 1)[0], called.rsplit(".", 1)[-1]
        asked = _asked_for_grad(node)
        if last == "Parameter":
            return asked is not False or not any(k.arg == "requires_grad" for k in node.keywords)
        if last in _MAKING and asked is not None:
            return asked
        if last == "requires_grad_":
            return not (node.args and ast.unparse(node.args[0]) == "False")
        if root in PLAIN or last in ("len", "range", "float", "str"):
            return False
        passed = self.values.unrecorded(node, spot)
        if passed is not None:
            return any_of(self.passes_graph(one, spot) for one in passed)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        given = any_of(self.has_graph(one, spot) for one in arguments)
        inner = ast.unparse(node.func.func) if isinstance(node.func, ast.Call) else ""
        layer = LAYER.search(inner)
        if layer is not None:
            return given if is_plain(layer[1]) else True
        if root in LIBRARIES or called.startswith("nn.functional"):
            return given
        if LAYER.search(called):
            return None if next(self.values.freezing(), None) is not None else self.values.makes_layers(called)
        module = self.values.module(node.func, spot)
        trains = self.values.trains(module, spot)
        if trains is not None:
            return True if trains else given
        if self._without_parameters(called, spot):
            return given
        if called in ("sum", "list", "tuple", "zip", "enumerate", "abs"):
            return given
        if isinstance(node.func, ast.Attribute):
            if self.method_of_a_library(node, spot):
                return None  # it may run without grad mode
            base = self.has_graph(node.func.value, spot)
            return any_of((base, given)) if base is not None else None
        return None

    def method_of_a_library(self, node: ast.Call, spot: Spot) -> str | None:
        """The module with parameters to train of which this is a method that no cell defines: ``gpt.generate(x)``."""
        if not isinstance(node.func, ast.Attribute):
            return None
        module = self.values.module(node.func.value, spot)
        if module is None or not self.values.trains(module, spot):
            return None
        if self.values.is_module(ast.unparse(node.func), spot):
            return None  # ``gpt.head(x)``: a module in it
        own = any(source.functions_of(run.source, node.func.attr) for run in self.values.runs)
        return None if own else module

    def _without_parameters(self, name: str, spot: Spot) -> bool:
        """Whether a name is a loss, an activation or the like: its result has a graph if an argument has one."""
        made = [source.given(s) for _, s in self.values.made(name, spot) if isinstance(s, ast.stmt)]
        layers = [LAYER.search(ast.unparse(one.func)) for one in made if isinstance(one, ast.Call)]
        return bool(layers) and all(one is not None and is_plain(one[1]) for one in layers)

    # ------------------------------------------------------------------ walking back

    def back(self, root: ast.AST, spot: Spot) -> Iterator[tuple[Spot, ast.AST, str]]:
        """What an expression was made from, the nearest first, up to cuts: expressions, and statements by name."""
        queue: list[tuple[Spot, ast.AST, str]] = [(spot, root, "")]
        seen: set[tuple[int, str]] = set()
        on_the_way: set[int] = set()
        other_calls: dict[int, tuple[Spot, ast.AST, str]] = {}  # what they pass to a function that another call led to
        for where, node, name in queue:
            yield where, node, name
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                for one in (
                    [] if self.values.is_function(node) else self.values.returned(node, name.partition("self.")[2])
                ):
                    queue.append((Spot(where.at, one.lineno), one, ""))
                continue
            statement = isinstance(node, ast.stmt)
            if statement and self.is_cut(where, node, name):
                continue
            value = source.given(node) if isinstance(node, ast.stmt) else node
            on_the_way.update(map(id, ast.walk(value)))
            queue += [other_calls.pop(one) for one in list(other_calls) if one in on_the_way]
            read = [ast.unparse(n) for n in outside_of_cuts(value) if isinstance(n, (ast.Name, ast.Attribute))]
            if isinstance(node, ast.AugAssign):
                read.append(ast.unparse(node.target))
            for _, inner in cuts_in(value):
                if any_of(self.has_graph(one, where) for one in inner) is False:  # it may have been cut before
                    read += sorted(name for one in inner for name in source.names_in(one))
            for part in dict.fromkeys(read):
                found = self.values.made(part, where)
                # Of the calls of a function, those that led here: what others pass to it is not behind the root.
                led = any(id(made) in on_the_way for _, made in found if isinstance(made, ast.expr))
                for at, made in found:
                    if (id(made), part) in seen:
                        continue
                    seen.add((id(made), part))
                    if led and id(made) not in on_the_way:
                        other_calls[id(made)] = (at, made, part)
                    else:
                        queue.append((at, made, part))

    def is_cut(self, spot: Spot, node: ast.AST, name: str = "") -> bool:
        """Whether a statement as a whole makes something without a graph."""
        switch = self.values.switch_around(spot.at, node) if isinstance(node, ast.stmt) else None
        return (switch is not None and switch.off is True) or (isinstance(node, ast.stmt) and indices_only(node, name))

    def cuts(self, root: ast.AST, spot: Spot) -> Iterator[Cut]:
        """The cuts on the way back from an expression whose value had a graph, or may have had one."""
        for where, node, name in self.back(root, spot):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg)):
                continue
            statement = node if isinstance(node, ast.stmt) else self.values.statement_of(where, node)
            if statement is None or not 0 <= where.at < len(self.values.runs):
                continue
            run, value = self.values.runs[where.at], source.given(node) if isinstance(node, ast.stmt) else node
            switch = self.values.switch_around(where.at, statement)
            parts: list[tuple[str, list[ast.expr], ast.stmt | None]] = []
            if switch is not None and isinstance(value, ast.expr):
                parts.append((switch.text, [value], switch.outer))
            elif isinstance(node, ast.stmt) and indices_only(node, name) and isinstance(value, ast.Call):
                base = [value.func.value] if isinstance(value.func, ast.Attribute) else []
                parts.append(("indices", [*(b for b in base if not is_library(b)), *value.args], None))
            else:
                scored = _is_scored(run, statement)
                parts += [(by, inner, None) for by, inner in cuts_in(value) if not (scored and by == "sample")]
            for by, inner, around in parts:
                self._lifted = around
                nested = [part for one in inner for _, parts_inside in cuts_in(one) for part in parts_inside]
                had = any_of(self.has_graph(one, where) for one in (*inner, *nested))
                self._lifted = None
                if had is not False:
                    calls = frozenset(ast.unparse(n.func) for one in inner for n in _calls(one))
                    sure = had is True and (switch is None or switch.off is True)
                    yield Cut(run, statement, by, around, sure, len(parts) == 1, calls)

    def frozen_modules(self, root: ast.AST, spot: Spot) -> Iterator[tuple[str, str]]:
        """Frozen modules whose output leads to an expression with no cut between or before: own name, and as called."""
        for where, node, _ in self.back(root, spot):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg)):
                continue
            if isinstance(node, ast.stmt) and self.values.switch_around(where.at, node) is not None:
                continue
            value = source.given(node) if isinstance(node, ast.stmt) else node
            for call in (n for n in outside_of_cuts(value) if isinstance(n, ast.Call)):
                name = self.values.module(call.func, where)
                if name is None or self.values.trains(name, where) is not False:
                    continue
                if any(self.has_graph(one, where) for one in call.args):
                    continue
                if not any(cut.sure for one in call.args for cut in self.cuts(one, where)):
                    yield name, ast.unparse(call.func)


def _is_scored(run: CellRun, statement: ast.stmt) -> bool:
    """Whether what a statement samples is given to `log_prob` in the same function or cell."""
    inside, tree = source.function_at(run.source, statement.lineno), source.parse(run.source)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    return isinstance(statement, ast.Assign) and is_scored(source.targets(statement), body)


def _calls(node: ast.AST) -> list[ast.Call]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Call)]


def _asked_for_grad(node: ast.AST) -> bool | None:
    """The value of ``requires_grad=`` in a call; False where there is none, None where it is not plain."""
    given = [k.value for k in node.keywords if k.arg == "requires_grad"] if isinstance(node, ast.Call) else []
    if not given:
        return False
    return given[0].value is True if isinstance(given[0], ast.Constant) else None
