"""A fix for graphs that pile up in one chain, whatever name it has at its end: at the line that adds each pass to it.

``tr_loss += self.training_step(inputs)``, and what is kept is ``tr_loss / steps`` in what a function has returned.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Set

from graphwidget.diagnosis.reuse.passes.loops import ENOUGH, Line
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.containers import detached_value
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short
from graphwidget.model import Fix, Record, Snapshot

__all__ = ["detached_where_joined", "joining_line"]


def detached_where_joined(
    record: Record, graph: Snapshot, line: Line, inside: frozenset[int], own: Set[str]
) -> Fix | None:
    """What the line adds, detached; None: no line, or several, or one of another form join the passes.

    Parameters
    ----------
    line
        The line of backward calls whose iterations pile up.
    inside
        The nodes that are kept.
    own
        Last names of what keeps them: what a line adds to one of these is no concern of this fix.
    """
    spot = joining_line(graph, line, inside)
    text = Cells.of(record).text(spot[0]) if spot is not None else ""
    found = syntax.statements_at(text, spot[1])[-1:] if spot is not None else []
    value = _added(found[0]) if found and own.isdisjoint(map(syntax.last_name, syntax.targets(found[0]))) else None
    if spot is None or value is None:
        return None
    edits = detached_value(spot[0], text, value, Cells.of(record).texts.values())
    shown = short(text_edit.new_text(text, edits))
    sentence = f"Write {shown} (In[{spot[0]}], line {spot[1]}): it adds the graph of each pass to those before."
    return Fix("detach", sentence, False, spot, "No gradient flows back through it.", edits=edits)


def joining_line(graph: Snapshot, line: Line, inside: frozenset[int]) -> tuple[int, int] | None:
    """The only line whose nodes lead at once to its own of earlier iterations, in at least three of them.

    A mean that is taken behind the passes leads to the sum, and joins nothing.
    """
    joined: dict[tuple[int, int] | None, set[int]] = defaultdict(set)
    for index in inside:
        made, place = line.iteration(graph, index), graph.place_of(index)
        if made is None or place is None:
            continue
        same = (
            one for one in graph.next(index) if (other := graph.place_of(one)) is not None and at(other) == at(place)
        )
        before = (line.iteration(graph, one) for one in same)
        if any(one is not None and one < made for one in before):
            joined[at(place)].add(made)
    spot = next(iter(joined), None)
    return spot if len(joined) == 1 and len(joined[spot]) >= ENOUGH - 1 else None


def _added(statement: ast.stmt) -> ast.expr | None:
    """`x` of ``total += x`` and of ``total = total + x``."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Add, ast.Sub)):
        return statement.value
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    value, target = statement.value, ast.unparse(statement.targets[0])
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
        return None
    terms = [one for one in (value.left, value.right) if ast.unparse(one) != target]
    return terms[0] if len(terms) == 1 else None
