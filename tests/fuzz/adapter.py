"""The forecast as a plain predictor, for external judges. Importing this module starts to record hooks, for good.

``predict(roots, retain_graph, inputs, create_graph, api, allow_unused)`` returns `ok`, `reason`, `fails_at`, `freed`
and `assumes`. A node is (torch's full name, sequence number). An answer with an assumption counts as unknown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.graph.snapshot import take
from graphwidget.capture.python import hooks
from graphwidget.engine.forecast import forecast
from graphwidget.model import Kind, Node

causes: Counter[str] = Counter()


@dataclass
class Prediction:
    ok: bool | None
    reason: str | None
    fails_at: tuple[str, int] | None
    freed: set[tuple[str, int]]
    assumes: tuple[str, ...]


def predict(
    roots: list[Any],
    retain_graph: bool,
    inputs: list[Any] | None,
    create_graph: bool,
    api: str = "backward",
    allow_unused: bool = True,
) -> Prediction:
    graph = take(
        roots,
        inputs=inputs or (),
        freed_by={},
        settle=True,  # the engine is about to unpack the same slots
        refuses_inputs=internals.refuses_reentrant_checkpoints(),
    )
    told = forecast(
        graph,
        graph.roots,
        inputs=graph.inputs if inputs else None,
        retain_graph=retain_graph,
        create_graph=create_graph,
        api="backward" if api == "backward" else "grad",
        allow_unused=allow_unused,
        grad_given=True,
    )
    causes[told.assumes[0] if told.assumes else told.why if told.ok is None else ""] += 1
    return Prediction(
        None if told.assumes else told.ok,
        told.reason,
        _identity(told.fails_at) if told.fails_at else None,
        {_identity(node) for node in told.frees},
        told.assumes,
    )


def _identity(node: Node) -> tuple[str, int]:
    prefix = "torch::autograd::" if node.kind == Kind.ACCUMULATE else ""
    return prefix + node.name, node.sequence_nr if node.sequence_nr >= 0 else 2**64 - 1


hooks.watch()
