"""Leaves that are made anew from what was computed: the lines that did it, and the program without them.

``loss = torch.tensor(total, requires_grad=True)``, or ``w = nn.Parameter(generator(z))``. Backward gives the new leaf a
gradient, and what its value was computed from none.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph.leaves.fresh_leaf import FreshLeaf
from graphwidget.diagnosis.no_graph.leaves.written import new_instead
from graphwidget.diagnosis.no_graph.measured import cut_at
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.no_graph.restoring import IN_A_LEAF, in_a_leaf
from graphwidget.diagnosis.no_graph.way_forward import why_cut
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import INTO_A_LEAF, INTO_A_TENSOR, Fix, MeasuredCut, Place, Record, Write

__all__ = [
    "handed_on",
    "in_leaves",
    "not_in_leaves",
    "not_in_numbers",
    "numbers_of",
    "place_of_cut",
    "said_of",
    "said_of_numbers",
    "written",
]


def _cuts_off(record: Record, step: Write) -> list[Cut]:
    """The measured lines that cut off what is computed from a step's parameters, and led to a root, or may have."""
    cuts = record.lineage.cuts if record.lineage is not None else ()
    behind = [one for one in cuts if one.used is not False and _is_behind(one, step)]
    found: dict[tuple[int, int], Cut] = {}
    for one in [one for one in behind if one.used] or behind:
        cut = cut_at(record, one)
        if cut is not None and cut.around is None and not _is_shown(cut.statement):
            found.setdefault((cut.run.run, cut.statement.lineno), cut)
    return sorted(found.values(), key=lambda cut: (cut.run.run, cut.statement.lineno))


def _is_behind(cut: MeasuredCut, step: Write) -> bool:
    """Whether the values of a cut were computed from a step's parameters: by their names, or by the optimizer's number.

    In the second run a parameter may have another of its names.
    """
    named = not set(step.paths).isdisjoint(cut.leaves)
    return named or any(number == step.optimizer_at for number, _ in cut.positions)


def numbers_of(record: Record, step: Write) -> list[Cut]:
    """The only line that makes numbers of it; empty: there are several, of which some may be for a person to read."""
    found = [cut for cut in _cuts_off(record, step) if cut.by in ("item", "detach", "data", "tensor") and _without(cut)]
    return found if len(found) == 1 else []


def _is_shown(statement: ast.stmt) -> bool:
    """``print(loss.item())``, or a text that is made of it."""
    texts = any(isinstance(node, ast.JoinedStr) for node in ast.walk(statement))
    return texts or "print" in syntax.calls_in(statement)


def said_of_numbers(cuts: Sequence[Cut]) -> str:
    """What that line does, as a sentence."""
    line = f"{short(ast.unparse(cuts[0].statement))} ({where(place_of_cut(cuts))})"
    return f"{line} uses what is computed from them, and {why_cut(cuts[0].by)}."


def not_in_numbers(cuts: Sequence[Cut]) -> Fix:
    """Use the tensor itself in that line."""
    line = f"{short(ast.unparse(cuts[0].statement))} ({where(place_of_cut(cuts))})"
    text = f"If they should train by this loss, write {line} without `{cuts[0].by}`."
    return Fix("differentiable_op", text, False, at(place_of_cut(cuts)), edits=_without(cuts[0]))


def in_leaves(record: Record, step: Write) -> list[Cut]:
    """Those that make a parameter of it, or write its values into a leaf."""
    return [cut for cut in _cuts_off(record, step) if cut.by in IN_A_LEAF]


def written(record: Record, step: Write) -> list[Cut]:
    """Those that write only its values into a tensor."""
    return [cut for cut in in_leaves(record, step) if cut.by in (INTO_A_LEAF, INTO_A_TENSOR)]


def _without(cut: Cut) -> text_edit.Edits:
    return restore_graph.without(cut.run.cell, cut.run.source, cut.statement, cut.by)


def place_of_cut(cuts: Sequence[Cut]) -> Place | None:
    """The line of the first."""
    return place_of(cuts[0].run, cuts[0].statement.lineno) if cuts else None


def said_of(cuts: Sequence[Cut]) -> str:
    """What the lines do, as a sentence."""
    lines = [f"{short(ast.unparse(cut.statement))} ({where(place_of_cut([cut]))})" for cut in cuts]
    shown = " and ".join([", ".join(lines[:-1]), lines[-1]] if len(lines) > 1 else lines)
    if all(cut.by == "Parameter" for cut in cuts):
        make = "make new leaves" if len(lines) > 1 else "makes a new leaf"
        return f"{shown} {make} of what is computed from them: no graph leads from there to them."
    if all(cut.by == INTO_A_TENSOR for cut in cuts):
        write = "write" if len(lines) > 1 else "writes"
        return f"{shown} {write} only the values of what is computed from them: no graph records that."
    put = "put" if len(lines) > 1 else "puts"
    return (
        f"{shown} {put} only the values of what is computed from them into leaves: no graph leads from there to them."
    )


def not_in_leaves(record: Record, cuts: Sequence[Cut]) -> Fix:
    """Use what was computed itself."""
    if len(cuts) == 1 and cuts[0].by == INTO_A_TENSOR:
        return new_instead(record, cuts[0])
    lines = " and ".join(where(place_of_cut([cut])) for cut in cuts)
    edits = tuple(edit for cut in cuts for edit in _without(cut))
    text = in_a_leaf(cuts[0]) if len(cuts) == 1 else f"{IN_A_LEAF[cuts[0].by]} ({lines})."
    return Fix("differentiable_op", text, False, at(place_of_cut(cuts)), edits=edits)


def handed_on(leaf: FreshLeaf, cuts: Sequence[Cut]) -> Fix:
    """Hand on a tensor itself, not a new one with its value; and compute it without the lines that cut it off."""
    cell, line = leaf.run.cell, leaf.statement.lineno
    text = (
        f"Hand on the computed tensor itself instead of {short(ast.unparse(leaf.made))} "
        f"(In[{cell}], line {line}), and compute it without `.item()` and the like."
    )
    edits: text_edit.Edits = ()
    if cuts and (given := leaf.without):
        edits = (*given, *(edit for cut in cuts if cut.statement is not leaf.statement for edit in _without(cut)))
    spot = (cell, line) if cell is not None and not cuts else at(place_of_cut(cuts))
    return Fix("differentiable_op", text, False, spot, edits=edits)
