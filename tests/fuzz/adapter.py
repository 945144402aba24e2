"""The forecast as a predictor for the differential fuzz, with what the tracker would have noted.

While programs run, in-place writes and hooks are watched and every call of the engine notes which in-place writes
into views it released. An answer that rests on an assumption counts as unknown here.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from graphwidget.capture import inplace
from graphwidget.capture.forecasting import forecast
from graphwidget.model import Forecast, Kind, Node

ENGINE_NAMES = {Kind.ACCUMULATE, Kind.COPY_SLICES, Kind.ERROR}
causes: Counter[str] = Counter()


@dataclass
class Prediction:
    ok: bool | None
    reason: str | None
    fails_at: tuple[str, int] | None
    freed: set[tuple[str, int]]
    assumes: tuple[str, ...] = ()
    unknown: str = ""
    forecast: Forecast | None = field(default=None, repr=False)


def predict(
    roots: list[Any],
    retain_graph: bool,
    inputs: list[Any] | None,
    create_graph: bool,
    api: str = "backward",
    allow_unused: bool = True,
) -> Prediction:
    told = forecast(
        roots,
        inputs=inputs or None,
        retain_graph=retain_graph,
        create_graph=create_graph,
        api="backward" if api == "backward" else "grad",
        allow_unused=allow_unused,
        grad_given=True,
        freed_by={},
        now=True,
    )
    ok = None if told.assumes else told.ok
    unknown = "assumes: " + told.assumes[0] if told.assumes else told.why if told.ok is None else ""
    causes[unknown] += 1
    return Prediction(
        ok,
        told.reason,
        identity(told.fails_at) if told.fails_at else None,
        {identity(node) for node in told.frees},
        told.assumes,
        unknown,
        told,
    )


def identity(node: Node) -> tuple[str, int]:
    """A node as the fuzz names it: torch's full name and sequence number."""
    prefix = "torch::autograd::" if node.kind in ENGINE_NAMES else ""
    return prefix + node.name, node.sequence_nr if node.sequence_nr >= 0 else 2**64 - 1


def reachable_writes(outputs: Any) -> list[Any]:
    """The CopySlices nodes that a call can reach."""
    stack = [node for node in (_history(output) for output in outputs) if node is not None]
    seen = set(stack)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                stack.append(node)
    return [node for node in seen if type(node).__name__ == "CopySlices"]


def _history(output: Any) -> Any:
    try:
        return output.grad_fn
    except RuntimeError:
        return None


def watched(engine: Any) -> Any:
    """The engine's entry, noting which in-place writes each call releases."""

    @functools.wraps(engine)
    def run(outputs: Any, grads: Any, retain_graph: bool, *args: Any, **kwargs: Any) -> Any:
        with inplace.releasing(reachable_writes(outputs), bool(retain_graph)):
            return engine(outputs, grads, retain_graph, *args, **kwargs)

    return run


def install() -> None:
    """Watch from now on, for the rest of the process."""
    torch.autograd._engine_run_backward = watched(torch.autograd._engine_run_backward)
    inplace.Watch().__enter__()


install()
