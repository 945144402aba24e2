"""Leave out the later call: the earlier one has run the same backward."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.second_backward import earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.source import syntax, text_edit
from graphwidget.diagnosis.source.text_edit import Edits
from graphwidget.diagnosis.wording import at, number, root_name, short
from graphwidget.model import Fix


def propose(case: Case) -> Fix | None:
    """None where the later call is another one, or where its line made the earlier one, too."""
    reuse, setting = case.reuse, case.setting
    if not reuse.same_call or (setting.in_loop and not setting.called_by_callee):
        return None
    place, call = reuse.later.place, earlier_call.named(reuse.later)
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
        words = f"Remove {what}: {earlier_call.named(reuse.earlier)} has run this backward."
    return Fix(
        id="remove_duplicate_call",
        text=words,
        verified=True,
        at=at(place),
        price="Nothing is lost: `.grad` has been filled by the first call.",
        edits=edits,
        by_hand=place.button,
    )
