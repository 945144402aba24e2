"""Gradients without a graph on the way from an optimizer's parameters to a loss: inner steps, as in meta-learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from graphwidget.diagnosis.findings.silences.constants.gradients import with_graph
from graphwidget.diagnosis.wording import names, short, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, Fix, Leaf, Record

__all__ = ["graphs_built", "inner_gradients", "said_of"]


def inner_gradients(record: Record, call: BackwardCall, is_meant: Callable[[Leaf], bool]) -> list[BackwardCall]:
    """The calls of ``autograd.grad`` before a backward that built no graph and read what an optimizer is to train.

    One for each line.

    Parameters
    ----------
    is_meant
        Whether the optimizer is to train a leaf.
    """
    found: dict[tuple[int | None, int | None], BackwardCall] = {}
    known = {one.n: one for one in record.calls}
    before = [one for one in record.calls if one.n < call.n]
    first = max((at + 1 for at, one in enumerate(before) if one.api == "backward"), default=0)
    for one in before[first:]:
        like = one if one.graph is not None or one.same_as is None else known.get(one.same_as, one)
        if one.api != "autograd.grad" or one.result != "ok" or one.create_graph or like.graph is None:
            continue
        inside = reachable(like.graph, (root.node for root in like.roots))
        if any(is_meant(leaf) for index, leaf in like.graph.leaves.items() if index in inside):
            found.setdefault((one.place.cell, one.place.line), one)
    return list(found.values())


def said_of(gradients: list[BackwardCall], named: tuple[str, ...]) -> str:
    """Why a loss that is computed with such gradients does not lead to the parameters."""
    lines = ", ".join(f"{short(one.place.source)} ({where(one.place)})" for one in gradients)
    return (
        f"{lines} differentiates what is computed from {names(named)}, and builds no graph for the gradient: what is "
        f"computed with it does not lead back to {'it' if len(named) == 1 else 'them'}."
    )


def graphs_built(record: Record, gradients: list[BackwardCall]) -> Fix:
    """Build these graphs."""
    fixes = [with_graph(record, one) for one in gradients]
    whole = all(one.edits for one in fixes)
    return replace(fixes[0], edits=tuple(edit for one in fixes for edit in one.edits) if whole else ())
