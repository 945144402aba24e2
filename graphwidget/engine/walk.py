"""A simulated call node by node: what arrives at each, and where its gradients go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from graphwidget.engine.forecast import result
from graphwidget.engine.rules import DEFINED
from graphwidget.engine.run import Run, at
from graphwidget.model import Forecast, Snapshot, TensorRef

__all__ = ["Gradient", "Turn", "Walk", "walk"]


class Gradient(NamedTuple):
    """A gradient on its way to a node (an index): for which output of its operation, and how defined it is.

    `defined`: UNDEFINED, MAYBE or DEFINED of the rules.
    """

    node: int
    output_nr: int
    defined: int


class Turn(NamedTuple):
    """One node (an index) and what the engine does with it.

    `result`: ``"runs"``; ``"captures"`` (its gradient is an answer of `autograd.grad`, it does not run itself);
    ``"raises"``; ``"unknown"``: whether it raises, and all that follows, cannot be known. `starts`: the call begins
    at it.
    """

    node: int
    result: Literal["runs", "captures", "raises", "unknown"]
    arriving: tuple[Gradient, ...]
    sends: tuple[Gradient, ...] = ()
    starts: bool = False


class Walk(NamedTuple):
    """The turns of a call in the engine's order, and its forecast."""

    turns: tuple[Turn, ...]
    forecast: Forecast


class _Recorded(Run):
    """A run that notes every gradient."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sent: dict[int, tuple[Gradient, ...]] = {}

    def hand_on(self, node: int, defined: int | tuple[int, ...]) -> None:
        super().hand_on(node, defined)
        graph, first = self.snapshot, self.start[node]
        self.sent[node] = tuple(
            Gradient(self.to[edge], graph.edge_nr[edge], at(defined, edge - first))
            for edge in range(first, self.start[node + 1])
            if self.takes_part(self.to[edge])
        )


def walk(
    snapshot: Snapshot,
    roots: Sequence[TensorRef],
    *,
    inputs: Sequence[TensorRef] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    api: str = "backward",
    grad_given: bool = False,
    **more: Any,
) -> Walk:
    """Simulate one backward call on `snapshot`, node by node. Parameters: see `forecast`."""
    keep = create_graph if retain_graph is None else retain_graph
    run = _Recorded(snapshot, roots, inputs or None, create_graph, captures=api != "backward")
    forecast = result(run, keep, grad_given=grad_given, **more)
    return Walk(tuple(_turns(run, forecast)), forecast)


def _turns(run: _Recorded, forecast: Forecast) -> list[Turn]:
    if forecast.ok is False and forecast.fails_at is None and not run.executed and not run.passed:
        return []  # refused before any node ran
    starts = {root.node for root in run.roots if root.node >= 0}
    arriving: dict[int, list[Gradient]] = {}
    for root in run.roots:
        if root.node >= 0:
            arriving.setdefault(root.node, []).append(Gradient(root.node, root.output_nr, DEFINED))
    order: list[tuple[int, Any]] = [(node, "runs") for node in run.executed]
    for node, position in reversed(run.passed):
        order.insert(position, (node, "captures"))
    stopped = forecast.fails_at or forecast.unknown_at
    if stopped is not None:
        order.append((stopped.index, "raises" if forecast.ok is False else "unknown"))
    turns = []
    for node, what in order:
        sends = run.sent.get(node, ()) if what == "runs" else ()
        turns.append(Turn(node, what, tuple(arriving.get(node, ())), sends, node in starts))
        for gradient in sends:
            arriving.setdefault(gradient.node, []).append(gradient)
    return turns
