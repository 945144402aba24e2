"""Lines that cut an input off: found on the way forward from it, or measured while the program ran once more."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph.measured import cut_at
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.no_graph.restoring import IN_A_LEAF, cause_of
from graphwidget.diagnosis.no_graph.way_forward import cuts_behind, why_cut
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, lines_of, own_path, place_of, short, where
from graphwidget.model import BackwardCall, Fix, MeasuredCut, Place, Record, TensorRef

__all__ = ["cut_ahead", "cut_off", "uncut"]

_Found = tuple[str, Place, tuple[Fix, ...]]


def cut_off(record: Record, call: BackwardCall, index: int, root: str, shown: str) -> _Found | None:
    """The line that was measured to be given what comes from an input, and to return what leads to the root alone.

    What went into the root comes before what only chose among other values, as the ids of an embedding do.
    """
    lineage = record.lineage
    if lineage is None or lineage.call != call.n:
        return None
    reaching = sorted((one for one in lineage.cuts if index in one.asked), key=lambda one: not one.used)
    found = [(one, cut) for one in reaching if (cut := cut_at(record, one)) is not None]
    if not found:
        return None
    measured, cut = found[0]
    text, place = _used_by(cut, root, shown)
    others = {(one.run.run, one.statement.lineno) for _, one in found} - {(cut.run.run, cut.statement.lineno)}
    more = f" So it is with {len(others)} other {'line' if len(others) == 1 else 'lines'}." if others else ""
    return f"{text}{more}", place, (_by_choice(place) if _only_chose(measured) else _remedy(record, cut, place),)


def _remedy(record: Record, cut: Cut, place: Place) -> Fix:
    return cause_of(record, cut).fix if cut.by in IN_A_LEAF else uncut(cut, place)


def _only_chose(cut: MeasuredCut) -> bool:
    return cut.chosen and not cut.used


def _by_choice(place: Place) -> Fix:
    text = (
        "What comes of it there only chooses among other values, and a choice has no derivative. Ask for the gradient "
        f"of what is chosen: of the values that are looked up ({where(place)})."
    )
    return Fix("find_the_cut", text, False, at(place))


def cut_ahead(record: Record, call: BackwardCall, asked: TensorRef | None, root: str, shown: str) -> _Found | None:
    """A line on the way forward from a leaf that cuts off what was computed from it."""
    path = own_path(asked) if asked is not None and asked.is_leaf else None
    cuts = [cut for cut in cuts_behind(record, path) if not _comes_later(call.place, cut)] if path is not None else []
    if not cuts:
        return None
    text, place = _used_by(cuts[0], root, shown)
    return text, place, (uncut(cuts[0], place),)


def _comes_later(place: Place, cut: Cut) -> bool:
    """Whether a line stands behind the call, or behind a line that led to it, in the first pass: it has not run yet.

    In a loop that is around both it may have.
    """
    text, line = cut.run.source, cut.statement.lineno
    running = [spot_line for cell, spot_line in lines_of(place) if cell == cut.run.cell]
    inside = source.function_at(text, line)
    before = [one for one in running if one < line and source.function_at(text, one) == inside]
    loops = source.loops_around(text, line)
    shared = any(loop in loops for one in before for loop in source.loops_around(text, one))
    return bool(before) and not shared and not place.iteration


def _used_by(cut: Cut, root: str, shown: str) -> tuple[str, Place]:
    """A sentence about a cut, and its line."""
    place = place_of(cut.run, cut.statement.lineno)
    line = f"{short(ast.unparse(cut.statement).split(chr(10), 1)[0])} ({where(place)})"
    how = f"it runs under `{cut.by}`" if cut.around is not None else why_cut(cut.by)
    return f"No path leads from `{root}` to {shown}: {line} uses what comes from it, and {how}.", place


def uncut(cut: Cut, place: Place) -> Fix:
    """Do without what cuts: take the line out of its block, or the operation out of the line."""
    cell, text, statement = cut.run.cell, cut.run.source, cut.statement
    edits: text_edit.Edits = ()
    if isinstance(cut.around, ast.With):
        edits = restore_graph.out_of_with(cell, text, cut.around, statement)
    elif cut.around is None and cut.by in ("detach", "data"):
        edits = restore_graph.without(cell, text, statement, cut.by)
    elif cut.around is None and _gives_itself(statement, cut.by):
        edits = text_edit.remove(cell, text, statement)
    do = f"take the line out of `{cut.by}`" if cut.around is not None else f"do without `{cut.by}` there"
    id_ = "remove_no_grad" if cut.around is not None else "find_the_cut"
    return Fix(id_, f"If the gradient is wanted, {do} ({where(place)}).", False, at(place), edits=edits)


def _gives_itself(statement: ast.stmt, by: str) -> bool:
    """``label = label.argmax(1)``: without the line, the name keeps what it had."""
    value = source.given(statement)
    call = value.func if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
    return call is not None and call.attr == by and list(source.targets(statement)) == [ast.unparse(call.value)]
