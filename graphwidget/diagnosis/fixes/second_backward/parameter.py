"""Make a parameter of what was computed from one: ``self.w = nn.Parameter(a * 0.1)`` for ``nn.Parameter(a) * 0.1``."""

from __future__ import annotations

from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Fix

__all__ = ["propose"]


def propose(case: Case) -> Fix | None:
    """Compute first, and make a parameter of the result: then each pass begins at a leaf, which is trained."""
    lines = case.computed_parameters
    edits: Edits = ()
    for place, value, new in lines:
        edits += text_edit.replace_node(place.cell, case.setting.text_of_cell(place.cell), value, new)
    if not lines:
        return None
    place, _, new = lines[0]
    text = f"Make a parameter of the result: {short(new, 80)} ({where(place)}). Its own graph is never built again."
    return Fix("register_modules", text, case.works_if_fresh, at(place), "The result is trained itself.", edits=edits)
