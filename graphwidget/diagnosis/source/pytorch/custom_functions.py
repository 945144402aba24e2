"""Custom Functions (``autograd.Function``) in the text of cells: what `forward` takes and what `backward` returns."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.model import CellRun, Place, Record

__all__ = ["FunctionText", "defined", "functions", "marks_dirty", "of_method"]

_ONCE = "once_differentiable"


@dataclass(frozen=True)
class FunctionText:
    """The class of a custom Function, in the cell that defines it."""

    run: CellRun
    made: ast.ClassDef

    @property
    def name(self) -> str:
        return self.made.name

    def method(self, *names: str) -> ast.FunctionDef | None:
        """The last of its methods that has one of these names."""
        found = [one for one in self.made.body if isinstance(one, ast.FunctionDef) and one.name in names]
        return found[-1] if found else None

    @property
    def backward(self) -> ast.FunctionDef | None:
        return self.method("backward", "vjp")

    @cached_property
    def inputs(self) -> tuple[str, ...] | None:
        """The names of what `forward` is applied to; None: it takes any number, or is not there."""
        forward = self.method("forward")
        if forward is None or forward.args.vararg is not None:
            return None
        names = tuple(one.arg for one in (*forward.args.posonlyargs, *forward.args.args))
        return names if self.method("setup_context") is not None else names[1:]

    @cached_property
    def results(self) -> list[ast.Return]:
        """The `return` statements of its forward."""
        return _returns(self.method("forward"))

    @cached_property
    def returns(self) -> list[ast.Return]:
        """The `return` statements of its backward."""
        return _returns(self.backward)

    @property
    def once(self) -> str | None:
        """The decorator that makes its backward one that cannot be differentiated, as it is written."""
        decorators = self.backward.decorator_list if self.backward is not None else []
        return next((text for text in map(ast.unparse, decorators) if text.endswith(_ONCE)), None)


def _returns(method: ast.FunctionDef | None) -> list[ast.Return]:
    body = method.body if method is not None else []
    return [one for one in syntax.own_statements(body) if isinstance(one, ast.Return)]


def functions(record: Record) -> list[FunctionText]:
    """The custom Functions that cells define: of several of one name the last."""
    found: dict[str, FunctionText] = {}
    for run in Cells.of(record).latest:
        for made in (node for node in syntax.nodes_of(run.source) if isinstance(node, ast.ClassDef)):
            if any(syntax.last_name(ast.unparse(base)) == "Function" for base in made.bases):
                found[made.name] = FunctionText(run, made)
    return list(found.values())


def of_method(record: Record, place: Place) -> FunctionText | None:
    """The class with the method whose text begins at a line, decorators first, whatever the class is derived from."""
    for run in Cells.of(record).latest:
        if (run.cell, run.file) != (place.cell, place.file):
            continue
        for made in (node for node in syntax.nodes_of(run.source) if isinstance(node, ast.ClassDef)):
            methods = (one for one in made.body if isinstance(one, ast.FunctionDef))
            if place.line in {syntax.first_line(one) for one in methods}:
                return FunctionText(run, made)
    return None


def marks_dirty(record: Record, place: Place) -> bool:
    """Whether a line stands in a class whose methods say by `mark_dirty` which input they write to."""
    for run in Cells.of(record).latest:
        if (run.cell, run.file) == (place.cell, place.file):
            found = syntax.function_at(run.source, place.line or 0)
            made = found[0] if found is not None else None
            return made is not None and any(syntax.last_name(one) == "mark_dirty" for one in syntax.calls_in(made))
    return False


def defined(record: Record, name: str) -> FunctionText | None:
    """The custom Function of that name."""
    return next((one for one in functions(record) if one.name == name), None)
