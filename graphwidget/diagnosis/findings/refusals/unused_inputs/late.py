"""An input that was told to require grad only after the root had been computed from it."""

from __future__ import annotations

import ast
from itertools import zip_longest

from graphwidget.diagnosis.fixes.in_place.handed_in import argument_of
from graphwidget.diagnosis.no_graph.measured import place_at, statement_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Fix, Place, Record, TextLine

__all__ = ["told_late"]

_TELLING = "requires_grad_"
_Found = tuple[str, Place, tuple[Fix, ...]]


def told_late(record: Record, call: BackwardCall, index: int, root: str, shown: str) -> _Found | None:
    """``sdf = net(p)``, then ``p.requires_grad_()`` and ``torch.autograd.grad(sdf, p)``: measured in a second run."""
    lineage = record.lineage
    if lineage is None or lineage.call != call.n:
        return None
    for one in lineage.late:
        told = statement_of(record, place_at(record, one.told))
        used = statement_of(record, place_at(record, one.used))
        if one.input == index and told is not None and used is not None:
            break
    else:
        return None
    place, before = place_of(told[0], told[1].lineno), place_of(used[0], used[1].lineno)
    text = (
        f"No path leads from `{root}` to {shown}: {_shown(told)} ({where(place)}) comes too late. {_shown(used)} "
        f"({where(before)}) had already computed with it, without a graph, what `{root}` was made of."
    )
    return text, place, (_sooner(record, one.used, one.told, before, shown),)


def _shown(found: tuple[CellRun, ast.stmt]) -> str:
    return short(ast.unparse(found[1]).split("\n", 1)[0])


def _sooner(record: Record, used: tuple[TextLine, ...], told: tuple[TextLine, ...], before: Place, shown: str) -> Fix:
    """Tell it before its first use: in the function or cell that both have in common, if it has one name there."""
    shared = _shared(used, told)
    if shared is not None:
        depth, line, later = shared
        here, there = statement_of(record, place_at(record, (line,))), statement_of(record, place_at(record, (later,)))
        name = _name(record, told, depth) if here is not None and there is not None else None
        if name is not None and here is not None and there is not None and _in_one(here, there):
            run, statement = here
            if name in {ast.unparse(node) for node in ast.walk(statement) if isinstance(node, ast.expr)}:
                new = f"{name}.{_TELLING}()"
                edits = text_edit.insert_before(run.cell, run.source, statement, [new])
                if depth == len(told) - 1 and isinstance(there[1], ast.Expr):
                    edits = (*edits, *text_edit.remove(run.cell, run.source, there[1]))
                spot = place_of(run, statement.lineno)
                text = f"Write `{new}` before {_shown(here)} ({where(spot)})."
                return Fix("require_grad_sooner", text, False, at(spot), edits=edits)
    text = f"Let {shown} require grad before it is used: before {where(before)}. Or compute there what is needed anew."
    return Fix("require_grad_sooner", text, False, at(before))


def _shared(used: tuple[TextLine, ...], told: tuple[TextLine, ...]) -> tuple[int, TextLine, TextLine] | None:
    """Where the way to the use and the way to the telling part: the depth from outside, and the line of each."""
    for depth, (one, other) in enumerate(zip_longest(reversed(used), reversed(told))):
        if one is None or other is None or (one.cell, one.file) != (other.cell, other.file):
            return None
        if one.line != other.line:
            return depth, one, other
    return None


def _in_one(here: tuple[CellRun, ast.stmt], there: tuple[CellRun, ast.stmt]) -> bool:
    """Whether two statements are of one function, or of one cell outside of functions."""
    one, other = (syntax.function_at(run.source, statement.lineno) for run, statement in (here, there))
    same = one is None and other is None
    return here[0] is there[0] and (
        same or (one is not None and other is not None and one[1].lineno == other[1].lineno)
    )


def _name(record: Record, told: tuple[TextLine, ...], depth: int) -> str | None:
    """What the tensor is called at a depth of the lines that told it, followed outwards through arguments."""
    lines, cells = told[: len(told) - depth], Cells.of(record)
    name = None
    for at_line, line in enumerate(lines):
        place = place_at(record, (line,))
        found = statement_of(record, place)
        if place is None or found is None:
            return None
        if at_line == 0:
            name = _told(found[1])
        else:
            inner = statement_of(record, place_at(record, (lines[at_line - 1],)))
            function = syntax.function_at(inner[0].source, inner[1].lineno) if inner is not None else None
            name = argument_of(cells, place, function, name) if function is not None and name is not None else None
    return name


def _told(statement: ast.stmt) -> str | None:
    """``x`` of ``x.requires_grad_()`` and of ``x.requires_grad = True``."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in (_TELLING, "requires_grad"):
            return ast.unparse(node.value)
    return None
