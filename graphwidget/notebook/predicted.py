"""A prediction that was made in the page: what it says, compared with what the call did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphwidget.diagnosis.prediction.names import Names
from graphwidget.diagnosis.prediction.predict import predicted
from graphwidget.diagnosis.written import Written
from graphwidget.engine import forecast as engine
from graphwidget.model import Answer, Prediction, Snapshot

if TYPE_CHECKING:
    from graphwidget.capture.tracker import Tracker

__all__ = ["Said"]

MAX_SENTENCES = 100


class Said:
    """What somebody said in the page about a call on the root of a graph."""

    def __init__(self, prediction: Prediction, slots: Sequence[str]) -> None:
        self._prediction, self._slots = prediction, frozenset(slots)

    @classmethod
    def of(
        cls,
        graph: Snapshot,
        retain_graph: bool,
        fails: str,
        fails_at: int,
        frees: Sequence[Sequence[int]] | None,
        tracker: Tracker,
    ) -> Said:
        """Look up what was said.

        Parameters
        ----------
        fails
            ``"yes"`` or ``"no"``.
        fails_at
            uid of the node at which it raises; -1: none was named.
        frees
            The slots, each as (uid, position in the node). None: nothing was said of slots.

        Raises
        ------
        LookupError
            If the graph has no such node or slot.
        """
        names = Names(graph)
        slots = None if frees is None else [names.of_slot(_slot(graph, *place)) for place in frees]
        at = names.of_node(_node(graph, fails_at)) if fails == "yes" and fails_at >= 0 else fails == "yes"
        handed = any(root.numel != 1 or "complex" in root.dtype for root in graph.roots)
        call = Written(gradient=handed, retain_graph=retain_graph or None)
        told = engine.forecast(graph, graph.roots, retain_graph=retain_graph, grad_given=True)
        return cls(predicted(graph, told, call, at, slots, tracker), slots or ())

    def compared(self, graph: Snapshot) -> dict[str, Any]:
        """Compare with what the call did, once it has been made. `graph`: as it was when it was predicted."""
        try:
            found, is_fact = self._prediction.check(), True
        except RuntimeError:  # refused before it began: such a call is not recorded, but its forecast is certain
            found, is_fact = self._prediction, False
        names = Names(graph)
        known = set(names.slots)
        marks = [
            [*_place(graph, names.slot(answer.about)), self._mark(answer)]
            for answer in found.answers
            if answer.about in known
        ]
        freed = sum(mark[2] in ("right", "missed") for mark in marks)
        return {
            "fact": is_fact,
            "fails": _right(found.answers, "fails"),
            "failsAt": _right(found.answers, "fails_at"),
            "freed": freed,
            "marks": marks,
            "answers": [[answer.right, answer.text] for answer in found.answers[:MAX_SENTENCES]],
            "more": max(0, len(found.answers) - MAX_SENTENCES),
            "score": found.score,
        }

    def _mark(self, answer: Answer) -> str:
        if answer.right is None:
            return "open"
        if answer.right:
            return "right"
        return "extra" if answer.about in self._slots else "missed"


def _right(answers: Sequence[Answer], about: str) -> bool | None:
    return next((answer.right for answer in answers if answer.about == about), None)


def _node(graph: Snapshot, uid: int) -> int:
    index = graph.index_of.get(uid)
    if index is None:
        raise LookupError("a node that was named is gone.")
    return index


def _slot(graph: Snapshot, uid: int, position: int) -> int:
    slots = graph.slots_of(_node(graph, uid))
    if not 0 <= position < len(slots):
        raise LookupError("a saved tensor that was marked is gone.")
    return slots[position]


def _place(graph: Snapshot, slot: int) -> tuple[int, int]:
    """(uid, position in the node) of a slot."""
    node = graph.node_with(slot)
    return graph.uid[node], slot - graph.slot_start[node]
