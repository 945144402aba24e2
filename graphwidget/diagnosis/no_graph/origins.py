"""Whether values had a graph, as far as the text of the cells and what was measured at an error can prove it.

Answers are True, False or None: it surely has a graph, it surely has none, that is unknown.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphwidget.diagnosis.source import grad_modes
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.torch_names import has_parameters
from graphwidget.model import BackwardCall, CellRun, Scene, Value

# What makes something without a graph of a value that has one.
CUTTING = {
    "detach": "detach",
    "detach_": "detach",
    "data": "detach",
    "item": "no_grad_or_item",
    "numpy": "differentiable_op",
    "tolist": "differentiable_op",
    "argmax": "differentiable_op",
    "argmin": "differentiable_op",
    "argsort": "differentiable_op",
    "long": "differentiable_op",
    "int": "differentiable_op",
    "bool": "differentiable_op",
    "multinomial": "differentiable_op",
    "sample": "differentiable_op",
    "tensor": "differentiable_op",
}

_MAKING = {
    *("zeros", "ones", "rand", "randn", "randint", "randperm", "full", "arange", "linspace", "empty", "eye"),
    *("zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "empty_like", "from_numpy", "one_hot"),
}
_LIBRARIES = {"torch", "F", "functional"}
_PLAIN = {"np", "numpy", "math", "random"}
_FREEZING = ("requires_grad_(False)", "requires_grad = False")
_LAYER = re.compile(r"(?:torch\.)?nn\.([A-Z]\w*)$")


def _is_plain(layer: str) -> bool:
    """Whether a class of `torch.nn` is no module with parameters."""
    return layer == "Parameter" or not has_parameters(layer)


class Spot(NamedTuple):
    """A line of a cell's run, which is given as an index. `past`: 1 where what stands on the line itself has run."""

    at: int
    line: int
    past: int = 0


class Cut(NamedTuple):
    """A statement that makes something without a graph, of something that had one, if `sure`."""

    run: CellRun
    statement: ast.stmt
    by: str  # `detach`, or the `no_grad` that is around it
    around: ast.stmt | None
    sure: bool
    alone: bool  # whether the statement has no other
    calls: frozenset[str]  # what is called inside


def any_of(answers: Iterable[bool | None]) -> bool | None:
    """Whether one of several is true; unknown where none surely is and one may be."""
    found = list(answers)
    return True if True in found else None if None in found else False


def what_is_cut(node: ast.AST) -> tuple[str, list[ast.expr]] | None:
    """How a node cuts the graph, and of what: ``y`` in ``y.detach()``, ``losses`` in ``torch.tensor(losses)``."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return "data", [node.value]
    if not isinstance(node, ast.Call):
        return None
    last = ast.unparse(node.func).rsplit(".", 1)[-1]
    if last not in CUTTING or last == "data":
        return None
    base = [node.func.value] if isinstance(node.func, ast.Attribute) and not _is_library(node.func.value) else []
    return last, [*base, *node.args]


def _is_library(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in _LIBRARIES | _PLAIN | {"nn"}


def outside_of_cuts(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression whose graphs it may have: not those inside of a cut, or of a test."""
    if what_is_cut(node) is not None or isinstance(node, (ast.Compare, ast.Lambda)):
        return
    if index_of_a_pair(node):
        return
    yield node
    skipped = node.test if isinstance(node, ast.IfExp) else node.slice if isinstance(node, ast.Subscript) else None
    for child in ast.iter_child_nodes(node):
        if child is not skipped:
            yield from outside_of_cuts(child)


def index_of_a_pair(node: ast.AST) -> bool:
    """Whether a node takes the indices of ``torch.max(y, 1)`` or ``y.topk(3)``, which have no derivative."""
    if isinstance(node, ast.Attribute) and node.attr == "indices":
        return True
    second = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 1
    return second and isinstance(node, ast.Subscript) and _is_pair(node.value)


def _is_pair(node: ast.AST) -> bool:
    """Whether a node is a call that returns values and their indices."""
    if not isinstance(node, ast.Call):
        return False
    last = ast.unparse(node.func).rsplit(".", 1)[-1]
    given = len(node.args) - (isinstance(node.func, ast.Attribute) and _is_library(node.func.value))
    dims = given > 0 or any(k.arg == "dim" for k in node.keywords)
    return last in ("topk", "sort", "kthvalue", "mode") or (last in ("max", "min", "median") and dims)


def indices_only(statement: ast.stmt, name: str) -> bool:
    """Whether a name gets the indices of what the statement computes: ``_, pred = torch.max(net(x), 1)``."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        return False
    parts = [ast.unparse(part) for part in statement.targets[0].elts]
    return len(parts) == 2 and parts[1] == name and _is_pair(statement.value)


@dataclass
class Origins:
    """What the values of a notebook were made from, up to a call.

    `runs` are those of its cells in order, `modules` what was measured: whether parameters of a module require grad.
    So is `scene`: what the names of the failing lines were.
    """

    runs: Sequence[CellRun]
    modules: dict[str, bool] = field(default_factory=dict)
    scene: Scene = Scene()
    _open: set[int] = field(default_factory=set)
    _lifted: ast.stmt | None = None  # a block without grad mode, for the question what there would be without it
    _whole: bool = False  # for the question what something goes back to: what it is itself does not answer that

    def spot_of(self, call: BackwardCall) -> Spot:
        """Where a call stands in the text."""
        place = call.place
        at = max((i for i, run in enumerate(self.runs) if run.cell == place.cell), default=len(self.runs) - 1)
        return Spot(at, place.line or 1, 1)

    def measured(self, name: str, spot: Spot) -> Value | None:
        """What a name was where the call raised, if it had been given no other value since the line."""
        if not 0 <= spot.at < len(self.runs):
            return None
        inside = source.function_at(self.runs[spot.at].source, spot.line)
        for sight in self.scene.sights:
            at = next((i for i, run in enumerate(self.runs) if run.run == sight.place.run), -1)
            at = at if sight.in_function or at < 0 else max(at, spot.at)
            if at < 0 or sight.in_function is not (inside is not None):
                continue
            there = Spot(at, sight.place.line or 1, 0)
            if inside is not None and (self.runs[at].source, inside) != (
                self.runs[spot.at].source,
                source.function_at(self.runs[at].source, there.line),
            ):
                continue
            if name in sight.values and self.made(name, spot) == self.made(name, there):
                return sight.values[name]
        return None

    def is_function(self, made: ast.AST) -> bool:
        """Whether a class is an ``autograd.Function``: its `forward` is never recorded."""
        known = {name for sight in self.scene.sights for name, one in sight.values.items() if one.kind == "function"}
        if not isinstance(made, ast.ClassDef):
            return False
        bases = [ast.unparse(base).rsplit(".", 1)[-1] for base in made.bases]
        return made.name in known or any(base == "Function" or base in known for base in bases)

    def unrecorded(self, node: ast.AST, spot: Spot) -> list[ast.expr] | None:
        """Of a call that runs code without recording it, and has a graph only if an argument has: its arguments.

        ``Function.apply`` is one, and a re-entrant checkpoint.
        """
        if not isinstance(node, ast.Call):
            return None
        called = ast.unparse(node.func)
        base, _, last = called.rpartition(".")
        if last == "apply" and base:
            value = self.measured(base, spot)
            made = [one for _, one in self.made(base, spot)]
            is_one = value is not None and value.kind == "function"
            return list(node.args) if is_one or any(self.is_function(one) for one in made) else None
        told = [ast.unparse(k.value) for k in node.keywords if k.arg == "use_reentrant"]
        return node.args[1:] if last.startswith("checkpoint") and told == ["True"] else None

    def passes_graph(self, node: ast.expr, spot: Spot) -> bool | None:
        """The same as `has_graph` of an argument. A module is no tensor: it hands no graph on."""
        return False if self._is_module(ast.unparse(node), spot) else self.has_graph(node, spot)

    def _is_module(self, name: str, spot: Spot) -> bool:
        """Whether a name surely is a module: as was measured, else as it was made."""
        value = self.measured(name, spot)
        if value is not None or name in self.modules:
            return value is None or value.kind == "module"
        made = [source.given(one) for _, one in self.made(name, spot) if isinstance(one, ast.stmt)]
        texts = [ast.unparse(one.func) if isinstance(one, ast.Call) else "" for one in made]
        return bool(texts) and all(_LAYER.search(text) or self._makes_layers(text) for text in texts)

    def _instances(self, cls: str) -> set[str]:
        """The names of the modules that were measured to be of a class."""
        seen = ((name, one) for sight in self.scene.sights for name, one in sight.values.items())
        return {name for name, one in seen if one.kind == "module" and one.type_name == cls}

    # ------------------------------------------------------------------ where values come from

    def made(self, name: str, spot: Spot) -> list[tuple[Spot, ast.AST]]:
        """What gave a name its value, as seen from a line: assignments, heads of loops, arguments, a function."""
        if not 0 <= spot.at < len(self.runs):
            return []
        cell = self.runs[spot.at].source
        over = _gone_over(cell, name, spot.line)
        if over:
            return [(spot, one) for one in over]
        inside = source.function_at(cell, spot.line)
        if name.startswith("self.") and inside is not None and inside[0] is not None:
            return [(Spot(spot.at, getattr(s, "lineno", 1)), s) for s in _of_attribute(inside[0], name)]
        if inside is not None:
            local = _binding(list(source.own_statements(inside[1].body)), name, spot.line + spot.past)
            if local:
                return [(Spot(spot.at, s.lineno), s) for s in local]
            names = [a.arg for a in (*inside[1].args.posonlyargs, *inside[1].args.args)]
            if name in (*names, *(a.arg for a in inside[1].args.kwonlyargs)):
                return list(self._arguments(inside, name, names))
        everything: list[tuple[Spot, ast.AST]] = []
        for at in range(len(self.runs) - 1 if inside is not None else spot.at, -1, -1):
            tree = source.parse(self.runs[at].source)
            line = spot.line + spot.past if at == spot.at and inside is None else sys.maxsize
            found: list[ast.stmt] = _binding(list(source.own_statements(tree.body)), name, line) if tree else []
            defined = [s for s in ast.walk(tree) if _defines(s, name)] if tree and not found else []
            everything += [(Spot(at, getattr(s, "lineno", 1)), s) for s in (*found, *defined[-1:])]
            if defined or any(s.lineno < line and not _only_element(s, name) for s in found):
                break
        return everything

    def _arguments(
        self, function: tuple[ast.ClassDef | None, ast.FunctionDef], name: str, names: list[str]
    ) -> Iterator[tuple[Spot, ast.AST]]:
        """What the calls of a function in the cells pass as an argument."""
        around, made = function
        called = {around.name if around is not None and made.name == "__init__" else made.name}
        if around is not None and made.name in ("forward", "__call__"):
            called |= {name.rsplit(".", 1)[-1] for name in self._instances(around.name)}
        position = names.index(name) - (around is not None and names[:1] == ["self"]) if name in names else -1
        for at, run in enumerate(self.runs):
            tree = source.parse(run.source)
            for node in (n for n in ast.walk(tree) if isinstance(n, ast.Call)) if tree else ():
                if ast.unparse(node.func).rsplit(".", 1)[-1] not in called:
                    continue
                by_name = [k.value for k in node.keywords if k.arg == name]
                given = by_name or (node.args[position : position + 1] if position >= 0 else [])
                yield from ((Spot(at, one.lineno), one) for one in given)

    def returned(self, function: ast.AST, name: str = "") -> list[ast.expr]:
        """What a function returns, or an object of a class when it is called."""
        bodies = [function] if isinstance(function, ast.FunctionDef) else []
        if isinstance(function, ast.ClassDef):
            wanted = (name,) if name else ("forward", "__call__")
            bodies = [s for s in function.body if isinstance(s, ast.FunctionDef) and s.name in wanted]
        found = [s for body in bodies for s in source.own_statements(body.body) if isinstance(s, ast.Return)]
        return [s.value for s in found if s.value is not None]

    # ------------------------------------------------------------------ modules

    def module(self, node: ast.expr, spot: Spot) -> str | None:
        """The notebook's own name of a module that is called: also where it is the argument of a function."""
        text = ast.unparse(node)
        root = text.split(".", 1)[0]
        if root == "self":
            return text
        found = self.made(root, spot)
        passed = {ast.unparse(one) for _, one in found if isinstance(one, ast.expr)}
        if passed and len(passed) == 1 and all(isinstance(one, ast.expr) for _, one in found):
            return text.replace(root, passed.pop(), 1)
        return text if not passed else None

    def frozen_by(self, name: str) -> tuple[CellRun, ast.stmt, ast.stmt] | None:
        """The line that froze a module or tensor, with the outermost statement around it."""
        return next((found for found in self.freezing() if name.split(".", 1)[0] in source.names_in(found[2])), None)

    def freezing(self) -> Iterator[tuple[CellRun, ast.stmt, ast.stmt]]:
        """The lines that freeze something, the last one first."""
        for run in reversed(self.runs):
            tree = source.parse(run.source)
            simple = (s for s in ast.walk(tree) if isinstance(s, ast.stmt) and not hasattr(s, "body")) if tree else ()
            for one in sorted(simple, key=lambda s: -s.lineno):
                if ast.unparse(one).endswith(_FREEZING):
                    yield run, one, source.statements_at(run.source, one.lineno)[0]

    def freezes_all(self, one: ast.stmt, outer: ast.stmt) -> bool:
        """Whether a line that freezes does so in any case, and not in a function."""
        return not _conditional(outer, one)

    def trains(self, name: str | None, spot: Spot) -> bool | None:
        """Whether a module has a parameter that requires grad."""
        if name is None:
            return None
        value = self.measured(name, spot)
        if value is not None and value.kind == "module":
            return bool(value.requires_grad)  # one without parameters trains nothing either
        if name in self.modules:
            return self.modules[name]
        values = [source.given(s) for _, s in self.made(name, spot) if isinstance(s, ast.stmt)]
        calls = [value for value in values if isinstance(value, ast.Call)]
        texts = [ast.unparse(value.func) for value in calls]
        made_here = bool(texts) and all(self._makes_layers(text) for text in texts)
        if not made_here:
            return None
        frozen = self.frozen_by(name)
        if frozen is not None and not name.startswith("self."):
            return False if not _conditional(frozen[2], frozen[1]) else None
        return None if next(self.freezing(), None) is not None and name.startswith("self.") else True

    def _makes_layers(self, called: str) -> bool:
        layer = _LAYER.search(called)
        if layer is not None:
            return not _is_plain(layer[1])
        trees = [tree for run in self.runs if (tree := source.parse(run.source)) is not None]
        classes = [s for tree in trees for s in ast.walk(tree) if isinstance(s, ast.ClassDef) and s.name == called]
        return any(ast.unparse(base).endswith("Module") for s in classes for base in s.bases)

    # ------------------------------------------------------------------ had it a graph?

    def has_graph(self, node: ast.AST, spot: Spot) -> bool | None:
        """Whether the value of an expression had a graph, or is a leaf that requires grad."""
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Compare)) or index_of_a_pair(node):
            return False
        if what_is_cut(node) is not None:
            return _told(node)
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
        """Whether something that an expression goes back to requires grad, be it cut off from that.

        False only where nothing that was measured anywhere requires grad: what the text shows may not be all.
        """
        values = [one for sight in self.scene.sights for one in sight.values.values()]
        if any(self.modules.values()) or any(one.requires_grad for one in values):
            return None
        self._whole = True
        try:
            return self.has_graph(root, spot)
        finally:
            self._whole = False

    def _of_loop(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, spot: Spot) -> bool | None:
        """A comprehension: its element, with what its loops go over in place of their names."""
        over = {name: loop.iter for loop in node.generators for name in source.names_in(loop.target)}
        called = [self.trains(self.module(n.func, spot), spot) for n in _calls(node.elt) if not _is_library(n.func)]
        if True in called:
            return True
        read = source.names_in(node.elt)
        plain = not called and what_is_cut(node.elt) is None
        if read and read <= set(over) and plain:
            return any_of(self.has_graph(over[name], spot) for name in sorted(read))
        return False if what_is_cut(node.elt) is not None else None

    def _assigned(self, text: str, spot: Spot) -> bool:
        return any(isinstance(s, ast.stmt) and text in source.targets(s) for _, s in self.made(text, spot))

    def _of_name(self, name: str, spot: Spot) -> bool | None:
        value = self.measured(name, spot)
        if value is not None and value.kind == "tensor" and self._lifted is None and not self._whole:
            return value.requires_grad
        if name in self.modules:
            return self.modules[name]
        found = self.made(name, spot)
        answers: list[bool | None] = []
        for where, one in found:
            if id(one) in self._open:
                continue
            self._open.add(id(one))
            filled = isinstance(one, ast.stmt) and _is_empty(source.given(one)) and any(_put(s, name) for _, s in found)
            answers.append(False if filled else self._of_binding(name, one, where))
            self._open.discard(id(one))
        return any_of(answers) if found else None

    def _of_binding(self, name: str, one: ast.AST, spot: Spot) -> bool | None:
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            return None
        if isinstance(one, ast.expr):
            return self.has_graph(one, spot)
        if isinstance(one, ast.stmt):
            switch = grad_modes.around(self.runs[spot.at].source, one)
            if switch is not None and switch.outer is not self._lifted:
                return False if switch.off else None
            if indices_only(one, name):
                return False
            put = _put(one, name)
            if put:
                return any_of(self.has_graph(part, spot) for part in put)
            if _is_empty(source.given(one)):
                return None  # who has filled it, and with what, is not seen
            value = self.has_graph(source.given(one), spot)
            return any_of((value, self._of_name(name, spot))) if isinstance(one, ast.AugAssign) else value
        return None

    def _of_call(self, node: ast.Call, spot: Spot) -> bool | None:
        called = ast.unparse(node.func)
        root, last = called.split(".", 1)[0], called.rsplit(".", 1)[-1]
        told = _told(node)
        if last == "Parameter":
            return told is not False or not any(k.arg == "requires_grad" for k in node.keywords)
        if last in _MAKING and told is not None:
            return told
        if last == "requires_grad_":
            return not (node.args and ast.unparse(node.args[0]) == "False")
        if root in _PLAIN or last in ("len", "range", "float", "str"):
            return False
        passed = self.unrecorded(node, spot)
        if passed is not None:
            return any_of(self.passes_graph(one, spot) for one in passed)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        given = any_of(self.has_graph(one, spot) for one in arguments)
        inner = ast.unparse(node.func.func) if isinstance(node.func, ast.Call) else ""
        layer = _LAYER.search(inner)
        if layer is not None:
            return given if _is_plain(layer[1]) else True
        if root in _LIBRARIES or called.startswith("nn.functional"):
            return given
        if _LAYER.search(called):
            return None if next(self.freezing(), None) is not None else self._makes_layers(called)
        module = self.module(node.func, spot)
        trains = self.trains(module, spot)
        if trains is not None:
            return True if trains else given
        if self._without_parameters(called, spot):
            return given
        if called in ("sum", "list", "tuple", "zip", "enumerate", "abs"):
            return given
        if isinstance(node.func, ast.Attribute):
            base = self.has_graph(node.func.value, spot)
            return any_of((base, given)) if base is not None else None
        return None

    def _without_parameters(self, name: str, spot: Spot) -> bool:
        """Whether a name is a loss, an activation or the like: what it returns has a graph if an argument has."""
        made = [source.given(s) for _, s in self.made(name, spot) if isinstance(s, ast.stmt)]
        layers = [_LAYER.search(ast.unparse(one.func)) for one in made if isinstance(one, ast.Call)]
        return bool(layers) and all(one is not None and _is_plain(one[1]) for one in layers)

    # ------------------------------------------------------------------ walking back

    def back(self, root: ast.AST, spot: Spot) -> Iterator[tuple[Spot, ast.AST, str]]:
        """What an expression was made of, the nearest first, not behind cuts: expressions, and statements by name."""
        queue: list[tuple[Spot, ast.AST, str]] = [(spot, root, "")]
        seen: set[tuple[int, str]] = set()
        for where, node, name in queue:
            yield where, node, name
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                for one in [] if self.is_function(node) else self.returned(node, name.partition("self.")[2]):
                    queue.append((Spot(where.at, one.lineno), one, ""))
                continue
            statement = isinstance(node, ast.stmt)
            if statement and self.is_cut(where, node, name):
                continue
            value = source.given(node) if isinstance(node, ast.stmt) else node
            read = [ast.unparse(n) for n in outside_of_cuts(value) if isinstance(n, (ast.Name, ast.Attribute))]
            if isinstance(node, ast.AugAssign):
                read.append(ast.unparse(node.target))
            for _, inner in _cuts_in(value):
                if any_of(self.has_graph(one, where) for one in inner) is False:  # it may have been cut before
                    read += sorted(name for one in inner for name in source.names_in(one))
            for part in dict.fromkeys(read):
                for at, made in self.made(part, where):
                    if (id(made), part) not in seen:
                        seen.add((id(made), part))
                        queue.append((at, made, part))

    def is_cut(self, spot: Spot, node: ast.AST, name: str = "") -> bool:
        """Whether a statement as a whole makes something without a graph."""
        switch = grad_modes.around(self.runs[spot.at].source, node) if isinstance(node, ast.stmt) else None
        return (switch is not None and switch.off is True) or (isinstance(node, ast.stmt) and indices_only(node, name))

    def cuts(self, root: ast.AST, spot: Spot) -> Iterator[Cut]:
        """The cuts on the way back from an expression whose value had a graph, or may have had one."""
        for where, node, name in self.back(root, spot):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg)):
                continue
            statement = node if isinstance(node, ast.stmt) else self.statement_of(where, node)
            if statement is None or not 0 <= where.at < len(self.runs):
                continue
            run, value = self.runs[where.at], source.given(node) if isinstance(node, ast.stmt) else node
            switch = grad_modes.around(run.source, statement)
            parts: list[tuple[str, list[ast.expr], ast.stmt | None]] = []
            if switch is not None and isinstance(value, ast.expr):
                parts.append((switch.text, [value], switch.outer))
            elif isinstance(node, ast.stmt) and indices_only(node, name) and isinstance(value, ast.Call):
                base = [value.func.value] if isinstance(value.func, ast.Attribute) else []
                parts.append(("indices", [*(b for b in base if not _is_library(b)), *value.args], None))
            else:
                parts += [(by, inner, None) for by, inner in _cuts_in(value)]
            for by, inner, around in parts:
                self._lifted = around
                nested = [part for one in inner for _, parts_inside in _cuts_in(one) for part in parts_inside]
                had = any_of(self.has_graph(one, where) for one in (*inner, *nested))
                self._lifted = None
                if had is not False:
                    calls = frozenset(ast.unparse(n.func) for one in inner for n in _calls(one))
                    sure = had is True and (switch is None or switch.off is True)
                    yield Cut(run, statement, by, around, sure, len(parts) == 1, calls)

    def statement_of(self, spot: Spot, node: ast.AST) -> ast.stmt | None:
        """The statement that an expression of a line stands in."""
        found = source.beginning_at(self.runs[spot.at].source, spot.line) if 0 <= spot.at < len(self.runs) else []
        found = found or source.statements_at(self.runs[spot.at].source, spot.line)[-1:] if self.runs else []
        text = ast.unparse(node)
        return next((s for s in found if text in ast.unparse(s)), None)

    def frozen_modules(self, root: ast.AST, spot: Spot) -> Iterator[tuple[str, str]]:
        """Frozen modules whose output leads to an expression with no cut between or before: own name, and as called."""
        for where, node, _ in self.back(root, spot):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg)):
                continue
            if isinstance(node, ast.stmt) and grad_modes.around(self.runs[where.at].source, node) is not None:
                continue
            value = source.given(node) if isinstance(node, ast.stmt) else node
            for call in (n for n in outside_of_cuts(value) if isinstance(n, ast.Call)):
                name = self.module(call.func, where)
                if name is None or self.trains(name, where) is not False:
                    continue
                if any(self.has_graph(one, where) for one in call.args):
                    continue
                if not any(cut.sure for one in call.args for cut in self.cuts(one, where)):
                    yield name, ast.unparse(call.func)


def _gone_over(cell: str, name: str, line: int) -> list[ast.expr]:
    """What a comprehension on a line goes over under a name."""
    loops = [n for s in source.statements_at(cell, line)[-1:] for n in ast.walk(s) if isinstance(n, ast.comprehension)]
    return [loop.iter for loop in loops if name in source.names_in(loop.target)]


def _cuts_in(node: ast.AST) -> Iterator[tuple[str, list[ast.expr]]]:
    """The cuts in an expression, the outermost first."""
    for one in ast.walk(node):
        found = what_is_cut(one)
        if found is not None:
            yield found
        elif index_of_a_pair(one) and isinstance(one, (ast.Subscript, ast.Attribute)):
            yield "indices", [one.value]


def _calls(node: ast.AST) -> list[ast.Call]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Call)]


def _told(node: ast.AST) -> bool | None:
    """What ``requires_grad=`` in a call says; False where there is none, None where it is not plain."""
    given = [k.value for k in node.keywords if k.arg == "requires_grad"] if isinstance(node, ast.Call) else []
    if not given:
        return False
    return given[0].value is True if isinstance(given[0], ast.Constant) else None


def _conditional(outer: ast.stmt, inner: ast.stmt) -> bool:
    """Whether a statement inside another stands under an `if`."""
    tests = [n for n in ast.walk(outer) if isinstance(n, (ast.If, ast.FunctionDef))]
    return any(inner in ast.walk(one) for one in tests)


def _defines(node: ast.AST, name: str) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name


_PUTTING = ("append", "extend", "insert", "add", "update")


def _put(statement: ast.AST, name: str) -> list[ast.expr]:
    """What a statement puts into a container of that name: ``losses.append(loss)``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return []
    return call.args if call.func.attr in _PUTTING and ast.unparse(call.func.value) == name else []


def _is_empty(node: ast.AST) -> bool:
    """Whether what is written there is a container without anything in it."""
    if isinstance(node, (ast.List, ast.Set)):
        return not node.elts
    if isinstance(node, ast.Dict):
        return not node.keys
    return isinstance(node, ast.Call) and not (node.args or node.keywords) and ast.unparse(node.func) in _CONTAINERS


_CONTAINERS = ("list", "dict", "set", "deque", "collections.deque", "OrderedDict")


def _gives(statement: ast.stmt, name: str) -> bool:
    """Whether a statement gives a name a value, or one of its elements."""
    if isinstance(statement, ast.For):
        return name in source.names_in(statement.target)
    if _put(statement, name):
        return True
    return any(target == name or target.startswith(f"{name}[") for target in source.targets(statement))


def _binding(statements: list[ast.stmt], name: str, line: int) -> list[ast.stmt]:
    """The last of some statements before a line that gives a name its value, and the one of the pass of a loop before.

    An element that is given a value does not hide what the whole was before.
    """
    giving = sorted((s for s in statements if _gives(s, name)), key=lambda s: s.lineno)
    earlier = [s for s in giving if s.lineno < line]
    whole = next((i for i, s in reversed(list(enumerate(earlier))) if not _only_element(s, name)), 0)
    loops = [s for s in statements if isinstance(s, (ast.For, ast.While)) and s.lineno < line <= (s.end_lineno or 0)]
    again = [s for s in giving if s.lineno >= line and any(s.lineno <= (loop.end_lineno or 0) for loop in loops)]
    return [*reversed(earlier[whole:]), *reversed(again)]


def _only_element(statement: ast.stmt, name: str) -> bool:
    return not isinstance(statement, ast.For) and name not in source.targets(statement)


def _of_attribute(owner: ast.ClassDef, name: str) -> list[ast.AST]:
    """What a class assigns to an attribute of `self`, in any method; or its method of that name: the class itself."""
    attribute = name.split(".")[1]
    if any(isinstance(s, ast.FunctionDef) and s.name == attribute for s in owner.body):
        return [s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == attribute]
    whole = f"self.{attribute}"
    return [s for s in ast.walk(owner) if isinstance(s, ast.stmt) and whole in source.targets(s)]
