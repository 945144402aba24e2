"""Writes in place by which one pass puts its graph into what the next one reads: ``self.priorities[index] = error``."""

from __future__ import annotations

from collections.abc import Iterator

from graphwidget.diagnosis.reuse.graph_paths import Tensor
from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.model import Write

__all__ = ["follows_a_call", "writes_between"]


def writes_between(reuse: Reuse, way: tuple[Tensor, ...]) -> Iterator[Write]:
    """The writes between two calls that made nodes on a way to the old part, the one nearest to it first.

    What they wrote is made of the old part, and is none of it: no name of the old part leads to it.

    Parameters
    ----------
    way
        The path from the later call's root to the node that failed.
    """
    graph = reuse.graph
    made = {number: write for write in reuse.record.writes for number in write.made}
    for index, _ in reversed(way):
        write = made.get(graph.seq[index]) if index in reuse.new else None
        if write is not None and write.after_calls > reuse.earlier.n and reuse.is_from_before(index):
            yield write


def follows_a_call(reuse: Reuse, write: Write) -> bool:
    """Whether a write came after a backward call of the same pass, and so is no part of what that pass trains.

    A simulation does not ask what trains: where the loss is made of ``state.mul_(0.9).add_(net(x))``, a cut in that
    line would be the first fix, and nothing would reach `net`.
    """
    run, iteration = write.place.run, write.place.iteration
    return any(
        call.n < write.after_calls and (call.place.run, call.place.iteration) == (run, iteration)
        for call in reuse.record.calls
    )
