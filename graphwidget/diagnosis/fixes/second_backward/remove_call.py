"""Leave out the later call: the earlier one has run the same backward."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.second_backward import earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax, text_edit
from graphwidget.diagnosis.source.text_edit import Edits
from graphwidget.diagnosis.wording import at, number, root_name, short, where
from graphwidget.model import Fix, Place


def propose(case: Case) -> Fix | None:
    """None where the later call is another one, or where its line made the earlier one, too."""
    reuse, setting = case.reuse, case.setting
    if not reuse.same_call or (setting.in_loop and not setting.called_by_callee):
        return None
    place, call, first = reuse.later.place, earlier_call.named(reuse.later), earlier_call.named(reuse.earlier)
    parts, rest = setting.parting
    if (
        setting.called_by_callee
        and parts is not None
        and rest
        and all(_does_nothing_else(setting, one) for one in rest)
    ):
        place, call, first = parts, where(parts), where(reuse.earlier.place.stack[-len(rest)])
    line, text = setting.text_of(place), setting.text_of_cell(place.cell)
    here = syntax.beginning_at(text, place.line) if place.line else []
    edits: Edits = ()
    if len(here) > 1:
        own = [s for s in here if syntax.backward_root(ast.unparse(s)) == root_name(reuse.later)]
        if own:
            line, edits = ast.unparse(own[-1]), text_edit.remove(place.cell, text, own[-1])
    elif line and at(place) == at(reuse.earlier.place):
        return None  # without the line, the first call would not run either
    elif line and place.line is not None:
        simple = [s for s in syntax.statements_at(text, place.line)[-1:] if not hasattr(s, "body")]
        edits = text_edit.remove(place.cell, text, *simple)
    if place.button:
        words = f"Leave out {number(reuse.later.n)}: {number(reuse.earlier.n)} has run this backward."
    else:
        what = f"{short(line)} ({call})" if line else call
        words = f"Remove {what}: {first} has run this backward."
    return Fix(
        id="remove_duplicate_call",
        text=words,
        verified=True,
        at=at(place),
        price="Nothing is lost: `.grad` has been filled by the first call.",
        edits=edits,
        by_hand=place.button,
    )


def _does_nothing_else(setting: Setting, place: Place) -> bool:
    """Whether the function that a line is in has no other statement, as one that hands a call on."""
    text = setting.text_of_cell(place.cell)
    found = syntax.function_at(text, place.line) if place.line is not None else None
    if found is None:
        return False
    body = [one for one in found[1].body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    return len(body) == 1
