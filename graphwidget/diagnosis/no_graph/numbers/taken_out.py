"""Values that leave the graph as Python numbers, of which tensors are made later: ``torch.tensor([math.sin(x)])``.

Nothing leads from a number back to its tensor. So where the line that makes a tensor was measured to be given numbers,
the lines are looked for that took numbers out of tensors, and of these, by the names in the text, those whose values
get there.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from graphwidget.diagnosis.fixes import as_tensors
from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.measured import TAKING, cut_at, is_measured_at, statement_of
from graphwidget.diagnosis.no_graph.numbers.by_numpy import Line, computing_beside
from graphwidget.diagnosis.no_graph.numbers.round_trips import is_wider, with_torch
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.no_graph.way_forward import tensors_made_of
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Fix, Place, Record

__all__ = ["taken_out", "why_number", "with_tensors"]

_MOST_NAMED = 3


class _Line(NamedTuple):
    run: CellRun
    statement: ast.stmt
    leaves: tuple[str, ...]

    @property
    def place(self) -> Place:
        return place_of(self.run, self.statement.lineno)


def taken_out(record: Record, call: BackwardCall, found: Cause) -> Cause | None:
    """The cause that numbers were taken out of tensors, where the found one only makes a tensor of numbers."""
    lineage = record.lineage
    if lineage is None or lineage.call != call.n or lineage.behind_root:
        return None
    packing = statement_of(record, found.place)
    if packing is not None and as_tensors.taken_by(packing[1]) == ["numpy"] and not as_tensors.makes_tensor(packing[1]):
        packing = None  # the array is taken there, and it is not yet known what makes a tensor of it
    elif found.place is not None and (packing is None or is_measured_at(record, *packing)):
        return None
    wanted = [one for one in lineage.cuts if one.wanted] or list(lineage.cuts)
    lines: dict[tuple[int, int], _Line] = {}
    for one in wanted:
        cut = cut_at(record, one) if one.by in (*TAKING, "detach") else None
        if cut is not None and one.by == "detach" and not as_tensors.taken_by(cut.statement):
            continue  # it stays a tensor
        if cut is not None and not isinstance(cut.statement, ast.Expr):
            lines.setdefault((cut.run.run, cut.statement.lineno), _Line(cut.run, cut.statement, one.leaves))
    made = [(one, _Line(*to, ())) for _, one in sorted(lines.items()) for to in _made_of(record, one)]
    of_it = [(one, to) for one, to in made if packing is None or _Line(*packing, ()).place.spot == to.place.spot]
    return (
        _cause(record, [one for one, to in of_it if to.place.spot == of_it[0][1].place.spot], of_it[0][1])
        if of_it
        else None
    )


def _made_of(record: Record, line: _Line) -> list[tuple[CellRun, ast.stmt]]:
    """The statements that make tensors of what a line computes, itself among them if it does."""
    own = [(line.run, line.statement)] if as_tensors.makes_tensor(line.statement) else []
    return [*own, *tensors_made_of(record, line.run, line.statement)]


def with_tensors(record: Record, cuts: Sequence[Cut]) -> Fix | None:
    """The fix for lines that take numbers out of tensors, if to leave out a word does not do.

    None where the first of the lines takes none.
    """
    taking = [_Line(one.run, one.statement, ()) for one in cuts if as_tensors.taken_by(one.statement)]
    if not taking or taking[0].statement is not cuts[0].statement or cuts[0].around is not None:
        return None
    packing = [_Line(*made, ()) for one in taking for made in _made_of(record, one)]
    alone = as_tensors.taken_by(taking[0].statement) in (["item"], ["float"], ["numpy"]) and not packing
    if alone:
        return with_torch(record, taking[0].run, taking[0].statement)
    return _fix(record, [*taking, *packing])


def _cause(record: Record, meant: list[_Line], packing: _Line) -> Cause:
    first = meant[0]
    leaves = tuple(dict.fromkeys(leaf for one in meant for leaf in one.leaves))
    source = f"what is computed from {names(leaves, _MOST_NAMED)}" if leaves else "a tensor that has a graph"
    others = [where(one.place) for one in meant[1:]]
    text = (
        f"{short(ast.unparse(first.statement))} ({where(first.place)}) leaves the graph: "
        f"{why_number(first.statement)} out of {source}."
    )
    if others:
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        text += f" So {'do' if len(others) > 1 else 'does'} {'; '.join(others[:_MOST_NAMED])}{more}."
    array = as_tensors.taken_by(first.statement) == ["numpy"]
    if packing[:2] != first[:2]:
        made = "it" if array else "such numbers"
        text += f" {short(ast.unparse(packing.statement))} ({where(packing.place)}) only makes a tensor of {made}."
    return Cause(text, _fix(record, [*meant, packing]), first.place)


def why_number(statement: ast.stmt) -> str:
    r"""``\`math.sin\` takes a Python number``: the part of a sentence that says what a line does."""
    by = as_tensors.taken_by(statement)
    if by == ["numpy"]:
        return "`numpy` takes an array"
    return f"{names(tuple(by)) or 'it'} {'take Python numbers' if len(by) > 1 else 'takes a Python number'}"


def _fix(record: Record, lines: list[_Line]) -> Fix:
    """The lines written with tensors: one edit, as one alone does not run."""
    first, runs = lines[0], Cells.of(record).latest
    beside = [_Line(*one, ()) for line in lines[:-1] for one in computing_beside(runs, Line(line.run, line.statement))]
    arrays = bool(beside)
    changed = list({one.place.spot: one for one in (*lines, *beside)}.values())
    edits = [as_tensors.edits(one.run.cell, one.run.source, one.statement, arrays=arrays) for one in changed]
    parts = (as_tensors.replacements(one.run.source, one.statement, arrays=arrays) for one in changed)
    what = list(dict.fromkeys(part for own in parts for part in own))
    where_not = [where(one.place) for one in changed if as_tensors.lacking(one.statement)] if arrays else []
    if where_not:
        what = [f"no NumPy ({where_not[0]})", *(part for part in what if "`np" not in part)]
    sentence = f"Compute with tensors from {where(first.place)} on{': ' if what else ''}{', '.join(what)}."
    every = tuple(edit for own in edits for edit in own) if all(edits) else ()
    trip = with_torch(record, first.run, first.statement)
    if trip is not None and (not every or is_wider(trip, every)):  # another line makes something else of a number
        return trip
    return Fix("differentiable_op", sentence, False, at(first.place), edits=every)
