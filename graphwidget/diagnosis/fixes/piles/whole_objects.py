"""Advice where a container keeps whole objects of which a backward has run the graphs: rollouts, batches, episodes.

The object has its tensors for that backward, so the line that made it must leave them as they are. What can change is
the line that puts the object into the container.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.paths import steps
from graphwidget.diagnosis.wording import at, place_of, short, spoken, where
from graphwidget.model import CellRun, Fix, Owner, Record

__all__ = ["kept_whole"]


def kept_whole(record: Record, holder: str, owners: Sequence[Owner]) -> Fix | None:
    """``self.finished.append(rollout)``: keep numbers of `rollout`; None: no line, or several, put objects there.

    Parameters
    ----------
    holder
        The path of the container.
    owners
        The tensors in its elements.
    """
    ways = [owner.path[len(holder) :] for owner in owners]
    if any("__" in way or len(steps(f"_{way}")) < 3 for way in ways):
        return None  # it keeps functions or errors, or the tensors themselves
    name = source.last_name(spoken(holder))
    found: list[tuple[CellRun, ast.expr, ast.expr]] = []
    for run in Cells.of(record).latest[::-1]:
        for node in source.nodes_of(run.source):
            put = containers.put_at(node)
            if put is None or source.last_name(ast.unparse(put[0])) != name:
                continue
            if isinstance(node, ast.expr) and isinstance(put[1], (ast.Name, ast.Attribute, ast.Subscript)):
                found.append((run, node, put[1]))
    if len(found) != 1:
        return None
    run, node, value = found[0]
    place = place_of(run, node.lineno)
    text = (
        f"Keep numbers, not objects: {short(ast.unparse(node))} ({where(place)}) keeps all tensors of "
        f"`{ast.unparse(value)}`. They have their graphs for the backward of their pass. Keep a record of what is read "
        "later, with tensors detached."
    )
    return Fix("keep_numbers", text, False, at(place), "No gradient flows back through the record.")
