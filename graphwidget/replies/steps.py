"""The steps of a call as the page shows them: all of them in short, and the sentences of a few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphwidget.diagnosis.steps.calls import ahead, past
from graphwidget.diagnosis.written import Written
from graphwidget.model import BackwardCall, SavedTensor, Snapshot, Step, Steps
from graphwidget.render.words import op_name, place_text

__all__ = ["SENTENCES", "Stepping", "sentences", "steps_ahead", "whole"]

SENTENCES = 200  # steps whose sentences one answer has


def whole(steps: Steps, walk: int, n: int | None) -> dict[str, Any]:
    """All steps: the nodes in order and what each frees, as data; and the sentences of the first ones.

    Parameters
    ----------
    walk
        The number by which the page asks for more sentences.
    n
        Number of the call; None: it has not been made.
    """
    forecast = steps.forecast
    reached = {node.index for node in forecast.reaches} if forecast else set()
    stopped = forecast is not None and (forecast.fails_at or forecast.unknown_at) is not None
    return {
        "walk": walk,
        "n": n,
        "call": steps.call,
        "past": steps.past,
        "known": steps.known,
        "ending": steps.ending,
        "assumes": list(steps.assumes),
        "nodes": [node.uid for node in steps.nodes],
        "frees": [_positions(forecast.frees.get(node, ())) for node in steps.nodes] if forecast else [],
        "sets": [i for i, node in enumerate(steps.nodes) if node.index in reached],
        "stops": ("unknown" if forecast.ok is None else "raises") if forecast and stopped else "",
        **sentences(steps, 0),
    }


def _positions(slots: Sequence[SavedTensor]) -> list[int]:
    """The positions of slots in their node."""
    return [saved.slot - saved.snapshot.slot_start[saved.snapshot.node_with(saved.slot)] for saved in slots]


def sentences(steps: Steps, at: int) -> dict[str, Any]:
    """The sentences of the steps around position `at`."""
    first = at // SENTENCES * SENTENCES
    return {"first": first, "rows": [_row(step) for step in steps[first : first + SENTENCES]]}


def _row(step: Step) -> dict[str, Any]:
    place = step.node.place
    return {
        "node": op_name(step.node.name),
        "names": list(step.node.labels[:3]),
        "place": place_text(place),
        "source": place.source if place is not None else "",
        "facts": [list(fact) for fact in step.facts],
        "text": step.text,
    }


def steps_ahead(graph: Snapshot, retain_graph: bool) -> Steps:
    """The steps of a call on the root of `graph`, as a button would make it."""
    return ahead(graph, Written(gradient=_is_handed_one(graph), retain_graph=retain_graph or None))


class Stepping:
    """The call that a page steps through. It is kept, so that more sentences can be asked for."""

    def __init__(self) -> None:
        self._walk = 0
        self._steps: Steps | None = None

    def of_call(self, call: BackwardCall) -> dict[str, Any]:
        """The steps of a recorded call."""
        return self._begin(past(call), call.n)

    def ahead(self, graph: Snapshot, retain_graph: bool) -> dict[str, Any]:
        """The steps of a call on the root of `graph`, as a button would make it."""
        return self._begin(steps_ahead(graph, retain_graph), None)

    def _begin(self, steps: Steps, n: int | None) -> dict[str, Any]:
        self._walk += 1
        self._steps = steps
        return whole(steps, self._walk, n)

    def more(self, walk: int, at: int) -> dict[str, Any] | None:
        """Further sentences; None: it is another call by now, or there is no such step."""
        if self._steps is None or walk != self._walk or not 0 <= at < len(self._steps):
            return None
        return sentences(self._steps, at)


def _is_handed_one(graph: Snapshot) -> bool:
    """Whether a button hands the call a gradient of ones: for a root that is no scalar."""
    return any(root.numel != 1 or "complex" in root.dtype for root in graph.roots)
