"""A prediction of a call, and its comparison with what the call does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from graphwidget.diagnosis.prediction.names import Names
from graphwidget.diagnosis.prediction.outcome import Outcome, call_on, foreseen, happened
from graphwidget.diagnosis.prediction.scoring import Said, answers
from graphwidget.diagnosis.written import Written
from graphwidget.model import BackwardCall, Forecast, Prediction, Snapshot

__all__ = ["Record", "predicted"]


class Record(Protocol):
    """A recorder of calls: a tracker."""

    @property
    def calls(self) -> Sequence[BackwardCall]:
        """The remembered calls, oldest first."""


def predicted(
    graph: Snapshot,
    forecast: Forecast,
    call: Written,
    fails: bool | str | None,
    frees: str | Iterable[str] | None,
    record: Record | None,
) -> Prediction:
    """Compare a prediction of a call on the roots of `graph` with a forecast.

    Parameters
    ----------
    fails, frees
        As for `graphwidget.predict`.
    record
        The recorder of the calls made from now on; None: there is none.

    Raises
    ------
    TypeError, ValueError
        If the graph has no node or slot with a predicted name, or several.
    """
    names = Names(graph)
    said = _said(names, call.on(graph.roots), fails, frees)
    expected = foreseen(graph, forecast, call.keeps)
    prediction = Prediction(said.call, names.nodes, names.slots, answers(said, names, expected))
    if record is None:
        return prediction
    last = record.calls[-1:]
    since = last[0].n + 1 if last else 0
    return replace(prediction, _checked=lambda: _checked(prediction, said, expected, record, since))


def _said(names: Names, call: str, fails: bool | str | None, frees: str | Iterable[str] | None) -> Said:
    """The prediction, with its names looked up in the graph."""
    if not (fails is None or isinstance(fails, (bool, str))):
        raise TypeError(
            "graphwidget.predict(): fails is True, False, or the name of the node at which the call would raise, not "
            f"{type(fails).__name__}."
        )
    graph = names.graph
    slots = None
    if frees is not None:
        listed = [frees] if isinstance(frees, str) else list(frees)
        if not all(isinstance(name, str) for name in listed):
            raise TypeError('graphwidget.predict(): frees are names of saved tensors, such as "MulBackward0.self".')
        places = []
        for slot in map(names.slot, listed):
            node = graph.node_with(slot)
            places.append((graph.uid[node], slot - graph.slot_start[node]))
        slots = tuple(dict.fromkeys(places))
    at = graph.uid[names.node(fails)] if isinstance(fails, str) else None
    return Said(call, bool(fails) if fails is not None else None, at, slots)


def _checked(first: Prediction, said: Said, expected: Outcome, record: Record, since: int) -> Prediction:
    """The prediction compared with the call that was made since."""
    call = call_on(expected.graph, record.calls, since)
    if call is None:
        raise RuntimeError(
            f"No {said.call} has been recorded since it was predicted. Run it first; a call that PyTorch refuses "
            "before any node runs is not recorded."
        )
    outcome = happened(expected, call)
    return replace(first, answers=answers(said, Names(_on_roots(outcome.graph, expected.graph)), outcome))


def _on_roots(graph: Snapshot, predicted: Snapshot) -> Snapshot:
    """A snapshot with the roots of the one that the prediction was made on."""
    at = ((root, graph.index_of.get(predicted.uid[root.node], -1)) for root in predicted.roots if root.node >= 0)
    return replace(graph, roots=tuple(replace(root, node=node) for root, node in at))
