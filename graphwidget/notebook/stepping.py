"""The steps of a call as the page shows them: all of them in short, and the sentences of a few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphwidget.diagnosis.steps.calls import ahead, past
from graphwidget.diagnosis.written import Written
from graphwidget.model import BackwardCall, Drawing, Event, SavedTensor, Snapshot, Step, Steps
from graphwidget.render.words import op_name, place_text

__all__ = ["SENTENCES", "Stepping", "before", "sentences", "steps_ahead", "whole"]

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
    told = steps.forecast
    reached = {node.index for node in told.reaches} if told else set()
    stopped = told is not None and (told.fails_at or told.unknown_at) is not None
    return {
        "walk": walk,
        "n": n,
        "call": steps.call,
        "past": steps.past,
        "known": steps.known,
        "ending": steps.ending,
        "assumes": list(steps.assumes),
        "nodes": [node.uid for node in steps.nodes],
        "frees": [_positions(told.frees.get(node, ())) for node in steps.nodes] if told else [],
        "sets": [i for i, node in enumerate(steps.nodes) if node.index in reached],
        "stops": ("unknown" if told.ok is None else "raises") if told and stopped else "",
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


def before(call: BackwardCall, graph: Snapshot, events: Sequence[Event], calls: Sequence[BackwardCall]) -> Drawing:
    """The picture just before a recorded call: it is about to run."""
    at = next((i for i, event in enumerate(events) if event.call == call.n), len(events))
    earlier = tuple(events[:at])
    numbers = {event.call for event in earlier}
    known = (*(each for each in calls if each.n in numbers), replace(call, result="running", failed_uid=None))
    return Drawing(graph, known, earlier, (), earlier[-1].id if earlier else -1)


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
