"""An optimizer that was made of the parameters of one module, where another that is built alike is trained."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, around
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at
from graphwidget.model import Fix, Place, Record

__all__ = ["OtherTwin", "other_twin"]


class OtherTwin(NamedTuple):
    """The module that an optimizer has (`held`), the one that the backward reached, and the line of the optimizer."""

    held: str
    reached: str
    made: Line
    asked: ast.expr  # `self.target` in `Adam(self.target.parameters())`

    @property
    def place(self) -> Place:
        return self.made.place

    @property
    def sentence(self) -> str:
        return (
            f" {self.made.shown} made it of the parameters of `{self.held}`. The loss is computed with "
            f"`{self.reached}`, which is built alike, and which no optimizer has."
        )

    @property
    def fix(self) -> Fix:
        """Give the optimizer the parameters of the other module."""
        text = f"Make the optimizer of the parameters of `{self.reached}`."
        run, new = self.made.run, self._beside()
        edits = text_edit.replace_node(run.cell, run.source, self.asked, new) if new else ()
        return Fix("new_optimizer", text, False, at(self.place), edits=edits)

    def _beside(self) -> str:
        """How the line writes the other module, where both are parts of one object, or variables."""
        owner, other = self.held.rpartition(".")[0], self.reached.rpartition(".")[0]
        name = syntax.last_name(self.reached)
        if owner != other or not name.isidentifier():
            return ""
        before = ast.unparse(self.asked).rpartition(".")[0]
        return f"{before}.{name}" if before else name


def other_twin(record: Record, owner: str, given: tuple[str, ...], named: tuple[str, ...]) -> OtherTwin | None:
    """The case that an optimizer has the parameters of one module, and the backward reached only those of its twin.

    Both were made by the same expression, the same parts of both are meant, and no optimizer has those of the twin.
    Not where the values of one go into the other: then something on the way cuts them off.
    """
    held, reached = around(named), around(given)
    same = {path.removeprefix(held) for path in named} == {path.removeprefix(reached) for path in given}
    unheld = {leaf.path for leaf in record.unheld if not leaf.waiting}
    if not held or not reached or held == reached or not same or not unheld.issuperset(given):
        return None
    names = syntax.last_name(held), syntax.last_name(reached)
    if not _makers(record, names[0]) & _makers(record, names[1]) or _feeds(record, *names):
        return None
    made = [
        OtherTwin(held, reached, Line(run, statement), asked)
        for run in Cells.of(record).latest
        for statement, _ in syntax.assigned_as(run.source, syntax.last_name(owner))
        if OPTIMIZER.search(ast.unparse(statement))
        for asked in _asked(statement)
        if syntax.last_name(ast.unparse(asked)) == names[0]
    ]
    return made[0] if len(made) == 1 else None


def _asked(statement: ast.stmt) -> Iterator[ast.expr]:
    """The modules of which a statement asks the parameters."""
    for node in ast.walk(statement):
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in ("parameters", "named_parameters"):
            yield function.value


def _makers(record: Record, name: str) -> set[str]:
    """The expressions that make what has a name, without the methods called on it: ``Net(3)`` of ``Net(3).to(dev)``."""
    found = set[str]()
    for run in Cells.of(record).latest:
        for statement, target in syntax.assigned_as(run.source, name):
            if not isinstance(statement, ast.Assign):
                continue
            inner, _ = syntax.given_to(statement, target)
            while (
                isinstance(inner, ast.Call)
                and isinstance(inner.func, ast.Attribute)
                and isinstance(inner.func.value, ast.Call)
            ):
                inner = inner.func.value
            if isinstance(inner, ast.Call):
                found.add(ast.unparse(inner))
    return found


def _feeds(record: Record, first: str, second: str) -> bool:
    """Whether a function or cell gives what one module computes to the other."""
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        functions = [one for one in syntax.nodes_of(run.source) if isinstance(one, ast.FunctionDef)]
        for body in (tree.body if tree is not None else [], *(one.body for one in functions)):
            names = set[str]()
            for one in sorted(syntax.own_statements(body), key=lambda one: one.lineno):
                if syntax.blocks_of(one):
                    continue
                if any(_computes(part, first, names) for part in _arguments(one, second)):
                    return True
                if _computes(syntax.given(one), first, names):
                    names |= set(syntax.targets(one))
    return False


def _arguments(statement: ast.stmt, called: str) -> Iterator[ast.expr]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and syntax.last_name(ast.unparse(node.func)) == called:
            yield from (*node.args, *(one.value for one in node.keywords))


def _computes(value: ast.AST, called: str, names: set[str]) -> bool:
    """Whether an expression calls a module, or reads one of the names that got what it computed."""
    calls = (syntax.last_name(one) for one in syntax.calls_in(value))
    return called in calls or any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(value))
