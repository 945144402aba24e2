"""A prediction made in the page, compared with what the call did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphwidget.diagnosis.prediction.names import Names
from graphwidget.diagnosis.prediction.predict import predicted
from graphwidget.diagnosis.written import Written
from graphwidget.engine import forecast as engine
from graphwidget.model import Answer, Prediction, Snapshot
from graphwidget.render.words import op_name, place_text

if TYPE_CHECKING:
    from graphwidget.capture.tracker import Tracker

__all__ = ["PagePrediction"]

MAX_SENTENCES = 100
MAX_NAMES = 500  # that are replaced in sentences


class PagePrediction:
    """A prediction made in the page, about a call on the root of a graph.

    Parameters
    ----------
    graph
        The graph of the call, as it is now.
    picture
        What the page shows. It can have nodes that the call does not reach: to mark one of these is wrong.
    fails
        ``"yes"`` or ``"no"``.
    fails_at
        uid of the node at which the call raises; -1: none was named.
    frees
        The slots that the call frees, each as (uid, position in the node). None: slots were not predicted.

    Raises
    ------
    LookupError
        If the picture has no such node or slot.
    """

    def __init__(
        self,
        graph: Snapshot,
        picture: Snapshot,
        retain_graph: bool,
        fails: str,
        fails_at: int,
        frees: Sequence[Sequence[int]] | None,
        tracker: Tracker,
    ) -> None:
        self._graph, self._picture = graph, picture
        self._names = names = Names(graph)
        for uid, position in frees or ():
            _slot(graph if uid in graph.index_of else picture, uid, position)
        inside = [place for place in frees or () if place[0] in graph.index_of]
        self._outside = [place for place in frees or () if place[0] not in graph.index_of]
        self._marked = {names.of_slot(_slot(graph, *place)) for place in inside}
        self._elsewhere = fails == "yes" and fails_at >= 0 and fails_at not in graph.index_of
        if self._elsewhere:
            _node(picture, fails_at)
        at: bool | str = fails == "yes"
        if at and fails_at in graph.index_of:
            at = names.of_node(graph.index_of[fails_at])
        needs_gradient = any(root.numel != 1 or "complex" in root.dtype for root in graph.roots)
        call = Written(gradient=needs_gradient, retain_graph=retain_graph or None)
        forecast = engine.forecast(graph, graph.roots, retain_graph=retain_graph, grad_given=True)
        slots = None if frees is None else sorted(self._marked)
        self._prediction: Prediction = predicted(graph, forecast, call, at, slots, tracker)

    def compared(self) -> dict[str, Any]:
        """Compare with what the call did, once it has been made."""
        try:
            found, is_fact = self._prediction.check(), True
        except RuntimeError:  # refused before it began: such a call is not recorded, but its forecast is certain
            found, is_fact = self._prediction, False
        known = set(self._names.slots) | self._marked
        marks = [
            [*_place(self._graph, self._names.slot(answer.about)), self._mark(answer)]
            for answer in found.answers
            if answer.about in known
        ]
        freed = sum(mark[2] in ("right", "missed") for mark in marks)
        answers: list[list[Any]] = [
            [answer.right, self._with_page_names(answer.text)] for answer in found.answers if not self._is_empty(answer)
        ]
        for uid, position in self._outside:
            marks.append([uid, position, "extra"])
            name = self._of(uid, self._slot_name(uid, position))
            answers.append([False, f"Wrong: {name} was not freed: {self._prediction.call} does not reach it."])
        fails_at = _right(found.answers, "fails_at")
        if self._elsewhere and _right(found.answers, "fails") is True:
            fails_at = False
            answers.insert(1, [False, f"Wrong: {self._prediction.call} does not reach the node that was named."])
        judged = [right for right, _ in answers if right is not None]
        return {
            "fact": is_fact,
            "fails": _right(found.answers, "fails"),
            "failsAt": fails_at,
            "freed": freed,
            "marks": marks,
            "answers": answers[:MAX_SENTENCES],
            "more": max(0, len(answers) - MAX_SENTENCES),
            "score": sum(judged) / len(judged) if judged else None,
        }

    def _mark(self, answer: Answer) -> str:
        if answer.right is None:
            return "open"
        if answer.right:
            return "right"
        return "extra" if answer.about in self._marked else "missed"

    def _is_empty(self, answer: Answer) -> bool:
        """Whether it says that rightly nothing was marked, although a slot was marked that the call does not reach."""
        return answer.about == "frees" and answer.right is True and bool(self._outside)

    def _with_page_names(self, text: str) -> str:
        """A sentence with the page's names of nodes: those of one name differ by variable or line, not by number."""
        return self._ambiguous.sub(self._page_name, text) if self._ambiguous else text

    def _page_name(self, found: re.Match[str]) -> str:
        index = self._names.node(found[1])
        op = op_name(self._graph.name_of(index))
        return self._of(self._graph.uid[index], op + (found[2] or ""))

    @cached_property
    def _ambiguous(self) -> re.Pattern[str] | None:
        """The names of nodes, with or without a slot, whose operation occurs more than once in the picture."""
        times = Counter(map(self._picture.name_of, range(len(self._picture))))
        names = [name for name in self._names.nodes if times[name.partition("[")[0]] > 1][:MAX_NAMES]
        if not names:
            return None
        return re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, names))})(\.[a-z_]\w*(?:\[\d+\])?)?(?![\w\[])")

    def _of(self, uid: int, name: str) -> str:
        """``MulBackward0.self of y``, or with its place in the code."""
        graph = self._graph if uid in self._graph.index_of else self._picture
        node = graph.node(_node(graph, uid))
        where = place_text(node.place)
        return f"{name} of {node.labels[0]}" if node.labels else f"{name} ({where})" if where else name

    def _slot_name(self, uid: int, position: int) -> str:
        node = self._picture.node(_node(self._picture, uid))
        return f"{op_name(node.name)}.{node.saved[position].name}"


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
