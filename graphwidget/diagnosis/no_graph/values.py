"""Where the values of a notebook come from, up to a call: what bound a name, and which modules train."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.bindings import bound_in, iterated, of_attribute, only_element
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.source.pytorch.names import has_parameters
from graphwidget.model import BackwardCall, CellRun, Scene, Value

_FREEZING = ("requires_grad_(False)", "requires_grad = False")
LAYER = re.compile(r"(?:torch\.)?nn\.([A-Z]\w*)$")


def is_plain(layer: str) -> bool:
    """Whether a class of `torch.nn` is no module with parameters."""
    return layer == "Parameter" or not has_parameters(layer)


class Spot(NamedTuple):
    """A line in the run of a cell, given by the index of the run. `past`: 1 if the line itself has run."""

    at: int
    line: int
    past: int = 0


@dataclass(frozen=True)
class Values:
    """What the cells and the measurements say about names.

    `runs` are the runs of the cells in order. `modules` and `scene` were measured: which parameters of modules require
    grad, and what the names of the failing lines were.
    """

    runs: Sequence[CellRun]
    modules: dict[str, bool] = field(default_factory=dict)
    scene: Scene = Scene()
    _made: dict[tuple[str, Spot], list[tuple[Spot, ast.AST]]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def switching(self) -> dict[str, tuple[CellRun, ast.With]]:
        """The decorators that switch grad mode off for what they decorate, by name, each with its `with`."""
        trees = [(run, tree) for run in self.runs if (tree := source.parse(run.source)) is not None]
        return {name: (run, block) for run, tree in trees for name, block in grad_modes.switching(tree)}

    def switch_around(self, at: int, statement: ast.stmt) -> grad_modes.Switch | None:
        """What around a statement decides about grad mode, if that may be off: a block, or a decorator."""
        cell = self.runs[at].source
        return grad_modes.around(cell, statement) or grad_modes.decorated_by(cell, statement, self.switching)

    def spot_of(self, call: BackwardCall) -> Spot:
        """Where a call stands in the text."""
        place = call.place
        at = max((i for i, run in enumerate(self.runs) if run.cell == place.cell), default=len(self.runs) - 1)
        return Spot(at, place.line or 1, 1)

    def measured(self, name: str, spot: Spot) -> Value | None:
        """What a name was where the call raised, if nothing bound it since the line."""
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
        """The arguments of a call that runs code without recording it: its result has a graph only if one of them has.

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
        given = [ast.unparse(k.value) for k in node.keywords if k.arg == "use_reentrant"]
        return node.args[1:] if last.startswith("checkpoint") and given == ["True"] else None

    def is_module(self, name: str, spot: Spot) -> bool:
        """Whether a name surely is a module, by measurement or else by the line that made it."""
        value = self.measured(name, spot)
        if value is not None or name in self.modules:
            return value is None or value.kind == "module"
        made = [source.given(one) for _, one in self.made(name, spot) if isinstance(one, ast.stmt)]
        texts = [ast.unparse(one.func) if isinstance(one, ast.Call) else "" for one in made]
        return bool(texts) and all(LAYER.search(text) or self.makes_layers(text) for text in texts)

    def _instances(self, cls: str) -> set[str]:
        """The names of the modules that were measured to be of a class."""
        seen = ((name, one) for sight in self.scene.sights for name, one in sight.values.items())
        return {name for name, one in seen if one.kind == "module" and one.type_name == cls}

    def made(self, name: str, spot: Spot) -> list[tuple[Spot, ast.AST]]:
        """What bound a name, as seen from a line: assignments, heads of loops, arguments, a function."""
        if (name, spot) not in self._made:
            self._made[name, spot] = self._find_made(name, spot)
        return self._made[name, spot]

    def _find_made(self, name: str, spot: Spot) -> list[tuple[Spot, ast.AST]]:
        if not 0 <= spot.at < len(self.runs):
            return []
        cell = self.runs[spot.at].source
        over = iterated(cell, name, spot.line)
        if over:
            return [(spot, one) for one in over]
        inside = source.function_at(cell, spot.line)
        if name.startswith("self.") and inside is not None and inside[0] is not None:
            return [(Spot(spot.at, getattr(s, "lineno", 1)), s) for s in of_attribute(inside[0], name)]
        if inside is not None:
            local = bound_in(inside[1].body, name, spot.line + spot.past)
            if local:
                return [(Spot(spot.at, s.lineno), s) for s in local]
            names = [a.arg for a in (*inside[1].args.posonlyargs, *inside[1].args.args)]
            if name in (*names, *(a.arg for a in inside[1].args.kwonlyargs)):
                return list(self._arguments(inside, name, names))
        for body in source.bodies_around(cell, spot.line)[1:-1]:
            free = bound_in(body, name)
            if free:
                return [(Spot(spot.at, s.lineno), s) for s in free]
        everything: list[tuple[Spot, ast.AST]] = []
        for at in self._searched(spot, inside is not None):
            tree = source.parse(self.runs[at].source)
            line = spot.line + spot.past if at == spot.at and inside is None else sys.maxsize
            same = self.runs[at].file == self.runs[spot.at].file
            found: list[ast.stmt] = bound_in(tree.body, name, line) if tree is not None and same else []
            defined = source.defined(self.runs[at].source, name) if not found else ()
            everything += [(Spot(at, getattr(s, "lineno", 1)), s) for s in (*found, *defined[-1:])]
            if defined or any(s.lineno < line and not only_element(s, name) for s in found):
                break
        return everything or list(self._methods(name, spot))

    def _methods(self, name: str, spot: Spot) -> Iterator[tuple[Spot, ast.AST]]:
        """The method that ``model.predict`` names, where `model` was made by a call of a class of the cells."""
        holder, _, method = name.rpartition(".")
        if not holder.isidentifier() or holder == "self":
            return
        made = [source.given(one) for _, one in self.made(holder, spot) if isinstance(one, (ast.Assign, ast.AnnAssign))]
        classes = {ast.unparse(one.func) for one in made if isinstance(one, ast.Call)}
        for at, run in enumerate(self.runs) if len(classes) == 1 else ():
            own = [one for one in source.defined(run.source, *classes) if isinstance(one, ast.ClassDef)]
            for function in (one for cls in own[-1:] for one in cls.body if isinstance(one, ast.FunctionDef)):
                if function.name == method:
                    yield Spot(at, function.lineno), function

    def _searched(self, spot: Spot, inside: bool) -> list[int]:
        """The runs in which a name may be bound, in order: cells share their names, each file has its own.

        Functions and classes of other files come last: they may have been imported.
        """
        file = self.runs[spot.at].file
        same = [at for at, run in enumerate(self.runs) if run.file == file and (inside or at <= spot.at)]
        others = [at for at, run in enumerate(self.runs) if run.file != file]
        return [*reversed(same), *reversed(others)]

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
            calls = source.calls_by_name(run.source)
            for node in (one for each in sorted(called) for one in calls.get(each, ())):
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

    def module(self, node: ast.expr, spot: Spot) -> str | None:
        """The notebook's own name of a module that is called, also if it is the argument of a function."""
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
        """The line that froze a module or tensor, and the outermost statement around it."""
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
        """Whether a freezing line always runs, and stands in no function."""
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
        made_here = bool(texts) and all(self.makes_layers(text) for text in texts)
        if not made_here:
            return None
        frozen = self.frozen_by(name)
        if frozen is not None and not name.startswith("self."):
            return False if not _conditional(frozen[2], frozen[1]) else None
        return None if next(self.freezing(), None) is not None and name.startswith("self.") else True

    def makes_layers(self, called: str) -> bool:
        layer = LAYER.search(called)
        if layer is not None:
            return not is_plain(layer[1])
        found = [one for run in self.runs for one in source.defined(run.source, called)]
        bases = [base for one in found if isinstance(one, ast.ClassDef) for base in one.bases]
        return any(ast.unparse(base).endswith("Module") for base in bases)

    def statement_of(self, spot: Spot, node: ast.AST) -> ast.stmt | None:
        """The statement that an expression of a line stands in."""
        found = source.beginning_at(self.runs[spot.at].source, spot.line) if 0 <= spot.at < len(self.runs) else []
        found = found or source.statements_at(self.runs[spot.at].source, spot.line)[-1:] if self.runs else []
        text = ast.unparse(node)
        return next((s for s in found if text in ast.unparse(s)), None)


def _conditional(outer: ast.stmt, inner: ast.stmt) -> bool:
    """Whether a statement inside another stands under an `if`."""
    tests = [n for n in ast.walk(outer) if isinstance(n, (ast.If, ast.FunctionDef))]
    return any(inner in ast.walk(one) for one in tests)
