"""The outcome of a call, with which a prediction is compared: from a forecast, or from a recorded call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from graphwidget.diagnosis.wording import number
from graphwidget.diagnosis.written import kept_by
from graphwidget.engine.forecast import forecast
from graphwidget.model import BackwardCall, Forecast, SlotState, Snapshot

__all__ = ["Outcome", "call_on", "foreseen", "happened"]


@dataclass(frozen=True)
class Outcome:
    """What one call does.

    Attributes
    ----------
    graph
        The graph before it.
    ok
        Whether it raises nothing; None: it cannot be known.
    fails_at
        Index of the node at which it raises; None: at none, or it is not known.
    at_once
        It raises before any node runs.
    why
        Why it raises, or why that cannot be known.
    ran
        Index -> whether the node runs; None: it cannot be known. For missing nodes `rest` holds.
    keeps
        The argument that makes it keep what its nodes saved (``retain_graph=True``); empty: it frees that.
    call
        The call that did it (``①``); empty: the outcome is a forecast.
    """

    graph: Snapshot
    ok: bool | None
    fails_at: int | None = None
    at_once: bool = False
    why: str = ""
    ran: dict[int, bool] = field(default_factory=dict)
    rest: bool | None = False
    keeps: str = ""
    call: str = ""

    def runs(self, node: int) -> bool | None:
        """Whether a node runs."""
        return self.ran.get(node, self.rest)

    def frees(self, slot: int) -> bool | None:
        """Whether it frees a slot."""
        state = self.graph.slot_state[slot]
        if self.keeps or SlotState(state).is_final:
            return False
        runs = self.runs(self.graph.node_with(slot))
        return None if runs and state == SlotState.UNKNOWN else runs


def foreseen(graph: Snapshot, answer: Forecast, keeps: str) -> Outcome:
    """The outcome by a forecast made on `graph`."""
    slot = answer.fails_slot
    freed_by = slot.freed_by if slot is not None else None
    why = answer.why.rstrip(".")
    if freed_by is not None:
        why = why.replace("an earlier call", number(freed_by))
    return Outcome(
        graph,
        answer.ok,
        answer.fails_at.index if answer.fails_at else None,
        at_once=answer.ok is False and answer.fails_at is None and not answer.executes,
        why=why,
        ran={node.index: True for node in answer.executes},
        rest=None if answer.ok is None else False,
        keeps=keeps,
    )


def happened(expected: Outcome, call: BackwardCall) -> Outcome:
    """The outcome of a recorded call. `expected` is what was known when it was predicted."""
    before = call.graph or expected.graph
    keeps = kept_by(call.retain_graph, call.create_graph)
    at = before.index_of.get(call.failed_uid) if call.failed_uid is not None else None
    if call.graph is not None:  # meanwhile other calls may have changed the graph
        again = forecast(
            before, call.roots, inputs=call.inputs, create_graph=call.create_graph, api=call.api, grad_given=True
        )
        expected = foreseen(before, again, keeps)
    message = f"{call.error_type or 'an error'}: {_first_sentence(call.error or '')}"
    if call.executed:
        ran = {index: True for uid in call.executed if (index := before.index_of.get(uid)) is not None}
        complete = len(call.executed) == call.executed_count
    else:
        ran = {index: True for index, seq in enumerate(before.seq) if call.ran_number(seq)}
        complete = bool(ran) or not call.executed_count
    return Outcome(
        before,
        call.result == "ok",
        at,
        why=expected.why if at is not None and at == expected.fails_at else message,
        ran=ran,
        rest=False if complete else None,
        keeps=keeps,
        call=number(call.n),
    )


def _first_sentence(message: str) -> str:
    return message.strip().split("\n")[0].split(". ")[0].rstrip(".")


def call_on(graph: Snapshot, calls: Iterable[BackwardCall], since: int) -> BackwardCall | None:
    """The first call from number `since` on that has the roots of `graph`; None: no such call is remembered."""
    roots = {graph.uid[root.node]: graph.seq[root.node] for root in graph.roots if root.node >= 0}
    for call in calls:
        if call.n < since or call.result == "running":
            continue
        if call.graph is not None:
            had = {call.graph.uid[root.node] for root in call.roots if root.node >= 0}
            if had == roots.keys():
                return call
        elif all(uid in call.executed or call.ran_number(seq) for uid, seq in roots.items()):
            return call
    return None
