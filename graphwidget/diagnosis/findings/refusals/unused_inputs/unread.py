"""An argument that a function is given and never reads: there the way of a value ends."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.no_graph.way_forward import MOST_STEPS, Use, follow
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.model import CellRun, Place, Record

__all__ = ["Unread", "unread_argument"]


class Unread(NamedTuple):
    """A function, its argument, and the statement that gives the argument another value before it is read; or None.

    `renamed`: or the statement gives the argument's value only another name, which nothing reads.
    """

    run: CellRun
    function: ast.FunctionDef
    argument: str
    again: ast.stmt | None
    renamed: bool = False

    @property
    def place(self) -> Place:
        """The line that is at fault, as far as the text tells."""
        return place_of(self.run, (self.again or self.function).lineno)

    @property
    def sentence(self) -> str:
        """What the function does with its argument."""
        if self.again is None:
            return f"`{self.function.name}` ({where(self.place)}) is given it as `{self.argument}`, and never reads it."
        line = f"{short(ast.unparse(self.again))} ({where(self.place)})"
        if self.renamed:
            return (
                f"`{self.function.name}` is given it as `{self.argument}`, and {line} only gives a variable another "
                "value: nothing reads it, and what the variable had before stays as it is."
            )
        return f"`{self.function.name}` is given it as `{self.argument}`, and {line} replaces that before it is read."


def unread_argument(record: Record, place: Place, name: str) -> Unread | None:
    """The only function on the way of a variable's value that does not read it; None: there is none, or several."""
    latest = Cells.of(record).latest
    run = next((one for one in reversed(latest) if one.cell == place.cell), None)
    if run is None or place.line is None:
        return None
    inside = syntax.function_at(run.source, place.line)
    within, function = inside if inside is not None else (None, None)
    ends = _ends([Use(run, within, function, frozenset({name}))], latest)
    found = {(one.run.run, one.function.lineno): one for one in ends}
    return next(iter(found.values())) if len(found) == 1 else None


def _ends(queue: list[Use], latest: list[CellRun]) -> Iterator[Unread]:
    seen = set[tuple[int, int, frozenset[str]]]()
    begun = len(queue)
    for at, use in enumerate(queue):
        key = (use.run.run, use.function.lineno if use.function is not None else 0, use.names)
        if key in seen or len(seen) >= MOST_STEPS:
            continue
        seen.add(key)
        if at >= begun and use.function is not None and (end := _end(use, use.function)) is not None:
            yield end
            continue
        queue += [one for one in follow(use, latest) if not isinstance(one, Cut)]


def _end(use: Use, function: ast.FunctionDef) -> Unread | None:
    """Whether a function never reads those of its arguments that have the value."""
    arguments = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    if len(use.names) != 1 or not use.names <= arguments or _is_open(function):
        return None
    (name,) = use.names
    renaming = _only_renames(function, name)
    if renaming is not None:
        return Unread(use.run, function, name, renaming, renamed=True)
    again: ast.stmt | None = None
    for statement in function.body:
        names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        if any(one.id == name and isinstance(one.ctx, ast.Load) for one in names):
            return None
        if name in syntax.targets(statement) and not isinstance(statement, ast.AugAssign):
            again = statement
            break
    return Unread(use.run, function, name, again)


def _only_renames(function: ast.FunctionDef, name: str) -> ast.stmt | None:
    """The statement by which an argument's value gets its last name, if it only gets names; None: it is used.

    ``for new, p in zip(weights, net.parameters()): p = new``.
    """
    names, last = {name}, None
    reads = [one for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    for one in sorted(syntax.own_statements(function.body), key=lambda one: (one.lineno, one.col_offset)):
        given = _handed_to(one, names)
        if given is None:
            continue
        new, read = given
        names |= new
        reads = [each for each in reads if all(each is not other for other in read)]
        last = one if isinstance(one, ast.Assign) else last
    return last if not any(one.id in names for one in reads) else None


def _handed_to(statement: ast.stmt, names: set[str]) -> tuple[set[str], list[ast.Name]] | None:
    """The names that a statement gives to values which some names have, and where it reads these."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name) and statement.value.id in names:
        targets = set(syntax.targets(statement))
        return (targets, [statement.value]) if all(map(str.isidentifier, targets)) else None
    if not isinstance(statement, ast.For):
        return None
    over, target = statement.iter, statement.target
    if isinstance(over, ast.Name) and over.id in names and isinstance(target, ast.Name):
        return {target.id}, [over]
    if isinstance(over, ast.Call) and ast.unparse(over.func) == "zip" and isinstance(target, ast.Tuple):
        pairs = [
            (given, one)
            for given, one in zip(over.args, target.elts)
            if isinstance(given, ast.Name) and given.id in names and isinstance(one, ast.Name)
        ]
        return (
            ({one.id for _, one in pairs if isinstance(one, ast.Name)}, [given for given, _ in pairs])
            if pairs
            else None
        )
    return None


def _is_open(function: ast.FunctionDef) -> bool:
    """Whether the text does not show what a function does: it is abstract, or reads its variables by their names."""
    asks = any(name in ("locals", "eval", "exec", "vars") for name in syntax.calls_in(function))
    plain = [one for one in function.body if not isinstance(one, (ast.Expr, ast.Pass, ast.Raise))]
    return asks or not plain
