"""Leave out the later call: the earlier one has run the same backward."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.second_backward import earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, number, root_name, short, where
from graphwidget.model import Fix, Place


def propose(case: Case) -> Fix | None:
    """None where the later call is another one, or where its line made the earlier one, too."""
    reuse, setting = case.reuse, case.setting
    if not reuse.same_call or (setting.in_loop and not setting.called_by_callee):
        return None
    place, call, first = reuse.later.place, earlier_call.named(reuse.later), earlier_call.named(reuse.earlier)
    parts, rest = setting.parting
    alone = not setting.called_by_callee or all(_does_nothing_else(setting, one) for one in rest)
    if setting.called_by_callee and parts is not None and rest:
        place, call, first = parts, where(parts), where(reuse.earlier.place.stack[-len(rest)])
    alone = alone and not _has_made_others(case, place)
    line, text = setting.text_of(place), setting.text_of_cell(place.cell)
    here = syntax.beginning_at(text, place.line) if place.line else []
    edits: Edits = ()
    if len(here) > 1 and alone:
        own = [s for s in here if syntax.backward_root(ast.unparse(s)) == root_name(reuse.later)]
        if own:
            line, edits = ast.unparse(own[-1]), text_edit.remove(place.cell, text, own[-1])
    elif line and at(place) == at(reuse.earlier.place):
        return None  # without the line, the first call would not run either
    elif line and place.line is not None:
        simple = [s for s in syntax.statements_at(text, place.line)[-1:] if not hasattr(s, "body")]
        edits = text_edit.remove(place.cell, text, *simple) if alone else ()
    if place.button:
        words = f"Leave out {number(reuse.later.n)}: {number(reuse.earlier.n)} has run this backward."
    else:
        what = f"{short(line)} ({call})" if line else call
        words = f"Remove {what}: {first} has run this backward."
        if not alone:
            words = f"Leave out {what} where {first} has run this backward."
    return Fix(
        id="remove_duplicate_call",
        text=words,
        verified=alone,
        at=at(place),
        price="Nothing is lost: `.grad` has been filled by the first call." if alone else "",
        edits=edits,
        by_hand=place.button,
    )


def of_a_term(case: Case) -> Fix | None:
    """Leave out the earlier call, whose loss is a term of the later one: its gradient comes with the sum's.

    Not where the program reads gradients, as those of the term may be meant to be seen alone.
    """
    place, cells = case.reuse.earlier.place, Cells.of(case.reuse.record)
    spot, term = at(place), root_name(case.reuse.earlier)
    here = syntax.beginning_at(cells.text(spot[0]), spot[1]) if spot is not None else []
    calls = [one for one in here if syntax.backward_root(ast.unparse(one)) == term]
    if spot is None or len(calls) != 1 or any(map(_reads_gradients, cells.texts.values())):
        return None
    return Fix(
        id="remove_duplicate_call",
        text=f"Remove {short(ast.unparse(calls[0]))} ({where(place)}): `{term}` is a term of "
        f"`{root_name(case.reuse.later)}`, and its gradient comes with that.",
        verified=case.works_if_fresh,
        at=spot,
        price="Nothing is lost: the later call gives these gradients, too.",
        edits=text_edit.remove(spot[0], cells.text(spot[0]), calls[0]),
    )


def _reads_gradients(text: str) -> bool:
    """Whether a text has a `.grad` that is not the function of `torch.autograd`."""
    nodes = list(syntax.nodes_of(text))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return any(isinstance(node, ast.Attribute) and node.attr == "grad" and id(node) not in called for node in nodes)


def _does_nothing_else(setting: Setting, place: Place) -> bool:
    """Whether the function that a line is in has no other statement, as one that hands a call on."""
    text = setting.text_of_cell(place.cell)
    found = syntax.function_at(text, place.line) if place.line is not None else None
    if found is None:
        return False
    body = [one for one in found[1].body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    return len(body) == 1


def _has_made_others(case: Case, place: Place) -> bool:
    """Whether a line has made calls of other passes, which would be missing without it."""
    if not case.setting.called_by_callee:
        return False
    before = (one for one in case.reuse.record.calls if one.n < case.reuse.earlier.n and one.result == "ok")
    return any(at(place) in map(at, (*one.place.stack, one.place)) for one in before)
