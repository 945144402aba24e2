"""Calls of methods that have a twin with a derivative: ``dist.rsample()`` in place of ``dist.sample()``.

Which method has one is known where the program ran once more to measure its cuts: its object said so.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at, place_of, where
from graphwidget.model import CellRun, Fix, MeasuredCut, Record, TextEdit

__all__ = ["called_at", "twin_fix"]


class _Twin(NamedTuple):
    """A method, what may stand in its place (empty: nothing), and a pair of classes where only the second has that."""

    method: str
    instead: str
    classes: tuple[str, str] | None


def called_at(measured: MeasuredCut, found: list[tuple[CellRun, ast.stmt]]) -> tuple[CellRun, ast.stmt, str] | None:
    """The outermost of some statements that calls a method with a twin, and the name of that method.

    None where grad mode had been switched off before that call: the twin would have no graph either.
    """
    known = {method: twin for method, twin in measured.twins if twin and not method[:1].isupper()}
    for run, statement in reversed(found if known else ()):
        if hasattr(statement, "body") or grad_modes.around(run.source, statement) is not None:
            continue
        switched = measured.switched
        if not measured.grad_mode and not any(_is_in(run, statement, one.cell, one.file, one.line) for one in switched):
            continue
        method = next((one for one in known if len(_calls(statement, one)) == 1), None)
        if method is not None:
            return run, statement, method
    return None


def _is_in(run: CellRun, statement: ast.stmt, cell: int | None, file: str | None, line: int) -> bool:
    there = run.file == file if file is not None else run.file is None and run.cell == cell
    return there and statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def twin_fix(record: Record, run: CellRun, statement: ast.stmt, method: str) -> Fix | None:
    """Return a fix that calls the twin of a method; words where its object has none; None: it has no such method."""
    calls = _calls(statement, method)
    twin = _measured(record, run, statement, method)
    if twin is None and method == "sample" and calls:
        twin = _Twin(method, "rsample", None)  # not measured: nearly all that are continuous have it
        limits = ", where the distribution has it: its samples have a graph. Else score them by `log_prob`."
    else:
        limits = ": its samples have a graph." if method == "sample" else ": its result has a graph."
    if twin is None or len(calls) != 1:
        return None
    place = place_of(run, statement.lineno)
    if not twin.instead:
        words = (
            f"The distribution has no `r{method}` ({where(place)}): its values are choices, which have no derivative. "
            "Score the sample by `log_prob`, or draw from a relaxed distribution (`RelaxedBernoulli`, "
            "`F.gumbel_softmax`)."
        )
        return Fix("reparametrize", words, False, at(place))
    function = calls[0].func
    assert isinstance(function, ast.Attribute)
    said = f"Write `{twin.instead}` in place of `{method}` ({where(place)})"
    line, end = text_edit.span(run.source, function)[1]
    edits: Edits = (TextEdit((line, end - len(method)), (line, end), twin.instead, run.cell),)
    if twin.classes is not None:
        said += f", and `{twin.classes[1]}` in place of `{twin.classes[0]}`"
        renamed = _renamed(record, *twin.classes)
        edits = (*edits, *renamed) if renamed else ()
    return Fix("differentiable_op", f"{said}{limits}", False, at(place), edits=edits)


def _measured(record: Record, run: CellRun, statement: ast.stmt, method: str) -> _Twin | None:
    for one in record.lineage.cuts if record.lineage is not None else ():
        twins = dict(one.twins)
        if method in twins and any(_is_in(run, statement, line.cell, line.file, line.line) for line in one.lines):
            classes = [pair for pair in one.twins if pair[0][:1].isupper()]
            return _Twin(method, twins[method], classes[0] if classes else None)
    return None


def _renamed(record: Record, old: str, new: str) -> Edits:
    """The other class in the only call of a class in the program."""
    called = [
        (run, node.func)
        for run in Cells.of(record).latest
        for node in syntax.nodes_of(run.source)
        if isinstance(node, ast.Call) and syntax.last_name(ast.unparse(node.func)) == old
    ]
    if len(called) != 1:
        return ()
    run, function = called[0]
    line, end = text_edit.span(run.source, function)[1]
    edit = TextEdit((line, end - len(old)), (line, end), new, run.cell)
    if isinstance(function, ast.Attribute):
        return (edit,)
    imported = [
        (one, name)
        for one in Cells.of(record).latest
        if one is run or one.file is None
        for node in syntax.nodes_of(one.source)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.name == old and name.asname is None
    ]
    if len(imported) != 1:
        return ()
    there, name = imported[0]
    return (*text_edit.replace_node(there.cell, there.source, name, f"{old}, {new}"), edit)


def _calls(statement: ast.stmt, method: str) -> list[ast.Call]:
    nodes = (one for one in ast.walk(statement) if isinstance(one, ast.Call))
    return [one for one in nodes if isinstance(one.func, ast.Attribute) and one.func.attr == method]
