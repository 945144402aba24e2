"""The steps of a call against what the engine does: the order, the shape of each gradient, and each `.grad`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.graph.identity import Identity
from graphwidget.diagnosis.steps.calls import ahead
from graphwidget.diagnosis.written import Written
from graphwidget.model import Kind, Snapshot
from tests.fuzz.watching import reachable


class StepsOfCall:
    """The steps of one call, foreseen, and what was seen of it while it ran."""

    def __init__(
        self,
        graph: Snapshot,
        outputs: Sequence[Any],
        identity: Identity,
        written: Written,
        api: str,
    ) -> None:
        self.steps = ahead(graph, written, inputs=graph.inputs if written.inputs else None, api=api)
        self.graph = graph
        self.shapes: dict[int, list[tuple[int, ...]]] = {}
        nodes = reachable(outputs)
        uids = identity.assign(nodes, [node._sequence_nr() for node in nodes], list(map(internals.name_of, nodes)))
        leaves = ((uid, internals.accumulated_variable(node)) for uid, node in zip(uids, nodes, strict=True))
        self._leaves = {uid: leaf for uid, leaf in leaves if leaf is not None}
        self._before = self._grads()

    def _grads(self) -> dict[int, tuple[Any, int]]:
        """Each leaf's `.grad`, and how often it was written in place."""
        return {uid: (leaf.grad, getattr(leaf.grad, "_version", -1)) for uid, leaf in self._leaves.items()}

    def arrived(self, uid: int, grads: Sequence[Any]) -> None:
        """A node's turn has come, with these gradients."""
        self.shapes[uid] = [tuple(grad.shape) for grad in grads if grad is not None]

    def differences(self, log: list[int] | None) -> Iterator[str]:
        """What happened and is not what the steps say."""
        if not self.steps.known:
            yield f"the order is unknown: {self.steps.ending}"
            return
        if log is not None:
            yield from self._in_order(log)
        yield from self._at_leaves()

    def _in_order(self, log: list[int]) -> Iterator[str]:
        steps = [step for step in self.steps if step.result != "raises" or step.node.uid in log]
        uids = [step.node.uid for step in steps if step.node.uid in self.shapes]
        if uids != log[: len(uids)]:
            yield f"the steps are in the order {uids}, not {log}"
        for step in steps:
            seen = self.shapes.get(step.node.uid)
            facts = self.graph.facts.get(step.node.index)
            if seen is None or (facts is not None and facts.hooks) or self.graph.outputs_of(step.node.index) is None:
                continue
            if any("Python code" in text for _, text in step.facts):
                continue
            if seen != list(step.shapes):
                yield f"gradients of shapes {seen} arrived at {step.node.name}, not {step.shapes}"

    def _at_leaves(self) -> Iterator[str]:
        now = self._grads()
        for step in self.steps:
            uid = step.node.uid
            if uid not in now or step.node.kind != Kind.ACCUMULATE or step.grad == "unknown" or step.result != "runs":
                continue
            (before, version), (after, version_after) = self._before[uid], now[uid]
            what = "set" if before is None else "added" if before is after else "replaced"
            if before is after and version == version_after:
                what = ""
            if what != step.grad:
                yield f"the .grad of {step.node.labels} was {what or 'left alone'}, not {step.grad or 'left alone'}"
