"""A root that was made a leaf of what was computed, so that its backward runs and trains nothing: what undoes that.

``loss.requires_grad = True``, ``torch.tensor(losses, requires_grad=True)``. Two lines are wrong: this one, and the one
before it that cut the graph. Where a second run has measured which one that was, both are undone together.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.leaves.fresh_leaf import FreshLeaf
from graphwidget.diagnosis.no_graph.measured import TAKING, cut_at
from graphwidget.diagnosis.no_graph.numbers.round_trips import is_wider, round_trip
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.no_graph.restoring import cause_of
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import short, where
from graphwidget.model import BackwardCall, MeasuredCut, Record

__all__ = ["undone"]

_MOST = 3  # lines that may be the one, of which each is tried


def undone(record: Record, call: BackwardCall, leaf: FreshLeaf) -> list[Cause]:
    """The lines that may have cut off what a leaf was made of, each with the edit that undoes both.

    Several that only take numbers out are undone together: the leaf was made of all of these numbers.
    """
    measured = _before(record, call)
    found = {(cut.run.run, cut.statement.lineno, cut.by): cut for one in measured if (cut := _cut(record, one))}
    cuts = list(found.values())
    causes = [_cause(record, cut._replace(alone=len(cuts) == 1), leaf) for cut in cuts]
    whole = _round_trip(record, leaf) if not any(one.fix.edits for one in causes) else None
    if whole is not None:
        return [whole]
    if len(causes) > 1 and all(one.by in TAKING for one in measured) and all(one.fix.edits for one in causes):
        together = tuple(dict.fromkeys(edit for one in causes for edit in one.fix.edits))
        first = causes[0]
        lines = " and ".join(where(one.place) for one in causes)
        text = f"Compute the loss from the tensors themselves ({lines}), not from numbers.{_and_not(leaf)}"
        return [Cause(first.text, replace(first.fix, text=text, edits=together), first.place)]
    return causes[:_MOST]


def _round_trip(record: Record, leaf: FreshLeaf) -> Cause | None:
    """The lines between a tensor and the leaf that is made of its values, as far as the text shows them."""
    asked = isinstance(leaf.made, ast.Assign) or isinstance(leaf.statement, ast.Expr)
    names = source.names_in(leaf.statement) if asked else ()
    made = [one for name in sorted(names) for one in source.assignments(leaf.run.source, name)]
    for one in (leaf.statement, *made):
        found = round_trip(record, leaf.run, one)
        if found is not None:
            also = leaf.without if asked and found.fix.edits else ()
            return Cause(found.text, replace(found.fix, edits=(*found.fix.edits, *also)), found.place)
    return None


def _before(record: Record, call: BackwardCall) -> list[MeasuredCut]:
    made = record.lineage.made if record.lineage is not None else ()
    cuts = next((one.cuts for one in made if one.call == call.n), ())
    return [one for one in cuts if one.wanted] or [one for one in cuts if one.leaves]


def _cut(record: Record, measured: MeasuredCut) -> Cut | None:
    return cut_at(record, replace(measured, used=True))


def _cause(record: Record, cut: Cut, leaf: FreshLeaf) -> Cause:
    """What is to be said of a cut, and the edits for both lines, if there are some for both."""
    cause = cause_of(record, cut)
    if cut.run is leaf.run and cut.statement is leaf.statement:
        return cause  # one line did both
    if is_wider(cause.fix, leaf.without):
        return cause  # it undoes the leaf, too
    also = leaf.without
    edits = (*also, *cause.fix.edits) if also and cause.fix.edits else ()
    fix = replace(cause.fix, text=f"{cause.fix.text}{_and_not(leaf)}", edits=edits, verified=False)
    return Cause(cause.text, fix, cause.place)


def _and_not(leaf: FreshLeaf) -> str:
    return f" And leave out {short(ast.unparse(leaf.made))} ({where(leaf.place)}): what is computed has a graph then."
