"""A line that writes only the values of what was computed into a tensor, and the program with a new tensor instead."""

from __future__ import annotations

from graphwidget.diagnosis.fixes import new_values
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import Fix, Place, Record

__all__ = ["new_instead"]


def new_instead(record: Record, cut: Cut) -> Fix:
    """Compute a new tensor instead; and keep the graphs of the gradients beside it, which lead through it then."""
    place = place_of(cut.run, cut.statement.lineno)
    new, edits = new_values.instead_of_write(cut.run.cell, cut.run.source, cut.statement)
    shown = f": {short(new)}" if edits else ""
    text = f"Compute a new tensor instead of this write, and go on with that{shown} ({where(place)})."
    freeing = _freeing(record, cut)
    if edits and freeing:
        cells = Cells.of(record)
        edits += tuple(edit for one in freeing for edit in cells.with_keyword(at(one), "retain_graph=True"))
        lines = " and ".join(where(one) for one in freeing)
        text = f"{text} Its graph leads through the earlier ones, so keep these: `retain_graph=True` ({lines})."
    return Fix("differentiable_op", text, False, at(place), edits=edits)


def _freeing(record: Record, cut: Cut) -> list[Place]:
    """The lines in the function of a write that ask for gradients and free the graph."""
    inside = syntax.function_at(cut.run.source, cut.statement.lineno)
    found: dict[int | None, Place] = {}
    for call in record.calls:
        here = call.place.cell == cut.run.cell and call.place.line is not None
        if call.api == "autograd.grad" and not call.retain_graph and here:
            if syntax.function_at(cut.run.source, call.place.line or 0) == inside:
                found.setdefault(call.place.line, call.place)
    return list(found.values())
