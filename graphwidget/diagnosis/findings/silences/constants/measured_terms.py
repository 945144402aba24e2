"""A term of a loss that was measured to have left the graph, wherever in the program that was.

The text of a program often does not show where a term comes from: an object that a hook has filled, a method of
another file. A second run follows the values themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.silences.constants import terms
from graphwidget.diagnosis.findings.silences.constants.sums import lacking
from graphwidget.diagnosis.fixes.restore_graph import LEFT_OUT
from graphwidget.diagnosis.no_graph.measured import cut_at, place_at
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.no_graph.restoring import cause_of
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at, opening, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, MeasuredTerm, Place, Record

__all__ = ["find", "may_be_there"]


def may_be_there(record: Record) -> bool:
    """Whether a line adds something without a graph to a loss that does not begin as a number in the text."""
    values = Values([run for _, run in sorted(record.runs.items())])
    for _, place, statement in _lines(record):
        index = max((i for i, run in enumerate(values.runs) if run.cell == place.cell), default=-1)
        parts = [part for one in terms.addends(statement) for part in (one.node, *one.others)]
        if not any(_is_number(values, part, Spot(index, statement.lineno)) for part in parts):
            return True
    return False


def _lines(record: Record) -> Iterator[tuple[BackwardCall, Place, ast.stmt]]:
    """The calls, places and statements that add to a loss something that has no graph in any call."""
    if not any(write.optimizer for write in record.writes):
        return
    cells = Cells.of(record)
    for call, place, alone in lacking(record):
        spot = at(place)
        statement = cells.statement(spot) if spot is not None and alone else None
        if statement is not None and not hasattr(statement, "body"):
            yield call, place, statement


def _is_number(values: Values, node: ast.expr, spot: Spot) -> bool:
    """Whether an expression is, or begins as, a number: ``loss = 0``."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return isinstance(node, ast.Constant)
    made = [one.value if isinstance(one, ast.Assign) else one for _, one in values.made(ast.unparse(node), spot)]
    numbers = [one for one in made if isinstance(one, ast.Constant)]
    text = values.runs[spot.at].source
    inside = syntax.function_at(text, spot.line)
    looped = any(inside is None or one.lineno > inside[1].lineno for one in syntax.loops_around(text, spot.line))
    return bool(numbers) and (looped or len(numbers) == len(made))


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line that adds such a term, if the text does not tell of it."""
    measured = {at(place_at(record, one.lines)): one for one in record.lineage.terms} if record.lineage else {}
    if not measured:
        return
    told = {(one.call, one.headline) for one in terms.find(record)}
    for call, place, statement in _lines(record):
        term = measured.get(at(place))
        found = _of(record, call, place, statement, term) if term is not None else None
        if found is not None and (found.call, found.headline) not in told:
            yield found


def _of(record: Record, call: BackwardCall, place: Place, statement: ast.stmt, term: MeasuredTerm) -> Finding | None:
    cuts = [found for one in term.cuts if one.positions and (found := cut_at(record, one)) is not None]
    own = set(syntax.targets(statement))  # ``loss = loss + penalty``
    added = [one.node for one in terms.addends(statement) if ast.unparse(one.node) not in own]
    added = [one for one in added if not isinstance(one, ast.Constant)]
    if len(added) != 1 and 0 <= term.number < len(whole := terms.summands(statement)):
        added = [whole[term.number]]
    beside = {name for name in own if added and name in syntax.paths_read(ast.Expr(added[0]))}
    # Of several terms it is not known which it is. What is made of the loss itself is a baseline of it.
    if not cuts or len(added) != 1 or beside or any(_is_said(cut, place, added[0]) for cut in cuts):
        return None
    cause, shown = cause_of(record, cuts[0]), short(ast.unparse(added[0]))
    cut = cause.place or place_of(cuts[0].run, cuts[0].statement.lineno)
    text = (
        f"{short(place.source)} ({where(place)}) adds {shown} to the loss, and it has never had a graph there. It is "
        f"computed from what is trained, and has left the graph: {cause.text} "
        f"{opening(call.n)} gives no parameter a gradient from it."
    )
    advice = f"{cause.fix.text} If the term is meant as a constant, `.detach()` in {where(place)} says so."
    fix = Fix(cause.fix.id, advice, False, at(cut), edits=cause.fix.edits, choice=True)
    return Finding(
        "silent",
        "warning",
        text,
        f"{shown} is a constant: no step goes by it.",
        call.n,
        made_at=cut,
        cause=cut,
        cut_at=cut,
        names=tuple(sorted(syntax.words_in(added[0]) - {"self", "torch", "nn", "F"})),
        fixes=(fix,),
    )


def _is_said(cut: Cut, place: Place, added: ast.expr) -> bool:
    """Whether the line that adds the term cuts it off itself: then it is meant as a constant."""
    there = cut.run.cell == place.cell and cut.statement.lineno == place.line
    called = (node.attr for node in ast.walk(added) if isinstance(node, ast.Attribute))
    return there or any(name in LEFT_OUT for name in called)
