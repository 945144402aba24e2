"""Make a parameter of what was computed from one: ``self.w = nn.Parameter(a * 0.1)`` for ``nn.Parameter(a) * 0.1``."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.source import syntax, text_edit
from graphwidget.diagnosis.source.made_parameters import as_parameter, computed_from
from graphwidget.diagnosis.source.text_edit import Edits
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Fix, Place

__all__ = ["makes_sense", "propose"]


def makes_sense(case: Case) -> bool:
    """Whether all of the old part was computed where an attribute was to get a parameter."""
    return bool(_lines(case))


def propose(case: Case) -> Fix | None:
    """Compute first, and make a parameter of the result: then each pass begins at a leaf, which is trained."""
    lines = _lines(case)
    edits: Edits = ()
    for place, value, new in lines:
        edits += text_edit.replace_node(place.cell, case.setting.text_of_cell(place.cell), value, new)
    if not lines:
        return None
    place, _, new = lines[0]
    text = f"Make a parameter of the result: {short(new, 80)} ({where(place)}). Its own graph is never built again."
    return Fix("register_modules", text, case.works_if_fresh, at(place), "The result is trained itself.", edits=edits)


def _lines(case: Case) -> list[tuple[Place, ast.expr, str]]:
    """The lines that made the old part, each with its expression and the one that makes a parameter of it."""
    graph, found = case.reuse.graph, dict[tuple[int, int], tuple[Place, ast.expr, str]]()
    for index in case.reuse.boundary:
        place = graph.place_of(index)
        spot = at(place)
        statement = syntax.statements_at(case.setting.text_of_cell(spot[0]), spot[1])[-1:] if spot is not None else []
        value = statement[0].value if statement and isinstance(statement[0], (ast.Assign, ast.AnnAssign)) else None
        attribute = statement and all(target.startswith("self.") for target in syntax.targets(statement[0]))
        made = computed_from(value) if attribute and value is not None else None
        new = as_parameter(value, made) if value is not None and made is not None else ""
        if place is None or spot is None or value is None or not new:
            return []
        found[spot] = place, value, new
    return list(found.values())
