"""Lines that ask what is no tensor for `backward`: what it is, and which line made it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.model import CellRun, Place

__all__ = ["Asked", "Made", "asked"]

# What only tensors have, and what is asked of a loss.
_OF_TENSORS = ("backward", "requires_grad_", "retain_grad", "grad_fn", "item", "detach")
_LACKING = re.compile(r"'([\w.]+)' object has no attribute '(\w+)'")


@dataclass(frozen=True)
class Made:
    """The statement that gave something its value, and what it was given: ``loss = f(x)``, `f(x)`."""

    run: CellRun
    statement: ast.stmt
    given: ast.expr

    @property
    def place(self) -> Place:
        return place_of(self.run, self.statement.lineno)

    @property
    def told(self) -> str:
        return f"{short(self.place.source)} ({where(self.place)})"


@dataclass(frozen=True)
class Asked:
    """What a line asks for something that only tensors have.

    Attributes
    ----------
    node, name
        The expression that is no tensor, and how it is written.
    kind, attribute
        The name of its class, and what it was asked for.
    made
        Where its value was made; None: not known.
    """

    failure: Failure
    node: ast.expr
    kind: str
    attribute: str

    @property
    def name(self) -> str:
        return ast.unparse(self.node)

    @property
    def root(self) -> str:
        """The variable that it is computed from, if there is one: `total` of ``(total / 3).backward()``."""
        read = syntax.names_in(self.node) if isinstance(self.node, ast.BinOp | ast.UnaryOp) else set[str]()
        return read.pop() if len(read) == 1 else self.name

    @property
    def line(self) -> str:
        """The line that raised, to be quoted."""
        return f"{short(self.failure.text)} ({where(self.failure.place)})"

    @property
    def what(self) -> str:
        """``a tuple of 2``, as it was measured; else by its class."""
        measured = next((s.others[self.name] for s in self.failure.run.scene.sights if self.name in s.others), "")
        article = "an" if self.kind[0] in "aeiouAEIOU" else "a"
        return measured or f"{article} {self.kind.rsplit('.', 1)[-1]}"

    @property
    def run(self) -> CellRun | None:
        """The cell or file with the line."""
        return next((one for one in self.failure.cells.latest if one.cell == self.failure.place.cell), None)

    @property
    def made(self) -> Made | None:
        if self.run is None:
            return None
        if isinstance(self.node, ast.Call):
            return Made(self.run, self.failure.statement, self.node) if self.failure.statement is not None else None
        line = self.failure.place.line or 0
        inside = syntax.function_at(self.failure.cell, line)
        found = [
            one
            for one in syntax.bindings(self.failure.cell, self.name, line)
            if _of(syntax.function_at(self.failure.cell, one.lineno)) is _of(inside)
        ]
        given = syntax.given(found[-1]) if found else None
        return Made(self.run, found[-1], given) if isinstance(given, ast.expr) else None

    def function(self, call: ast.expr) -> tuple[CellRun, ast.FunctionDef] | None:
        """The function of the user's own that an expression calls: the only one of that name."""
        if not isinstance(call, ast.Call):
            return None
        name = syntax.last_name(ast.unparse(call.func))
        found = [
            (run, node)
            for run in self.failure.cells.latest
            for node in syntax.nodes_of(run.source)
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        return found[0] if len(found) == 1 else None


def _of(found: tuple[ast.ClassDef | None, ast.FunctionDef] | None) -> ast.FunctionDef | None:
    return found[1] if found is not None else None


def asked(failure: Failure) -> Asked | None:
    """What the failing line asks of what is no tensor; None: it raised something else."""
    found = _LACKING.fullmatch((failure.run.error or "").strip().split("\n", 1)[0].rstrip("."))
    if failure.run.error_type != "AttributeError" or found is None or found[2] not in _OF_TENSORS:
        return None
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    there = [one.value for one in nodes if isinstance(one, ast.Attribute) and one.attr == found[2]]
    return Asked(failure, there[0], found[1], found[2]) if len(there) == 1 else None
