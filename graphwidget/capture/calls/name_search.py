"""Searches for names before calls, within a share of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from types import FrameType
from typing import Any

from graphwidget.capture.calls.counting.policy import CallPolicy
from graphwidget.capture.owners.search import Search
from graphwidget.model import Snapshot

__all__ = ["NameSearch", "with_names_of_inputs"]


class NameSearch:
    """Limits the searches during one cell.

    Parameters
    ----------
    search
        Finds names, given the frames of running cells and the lowest sequence number that matters. (Leaves always
        matter.)
    """

    def __init__(self, policy: CallPolicy, search: Callable[[Sequence[FrameType], int], Search]) -> None:
        self.policy, self.search = policy, search
        self._searches, self._seconds, self._began = 0, 0.0, perf_counter()

    def begin_cell(self) -> None:
        """Begin a new cell, with all its free searches."""
        self._searches, self._seconds, self._began = 0, 0.0, perf_counter()

    def find(self, frames: Sequence[FrameType], since: int, *, force: bool = False) -> Search | None:
        """Find the names of leaves and of newer tensors; None if searching has used up its share of the time.

        `since`: the lowest sequence number that counts as newer.
        """
        now = perf_counter()
        self._searches += 1
        allowed = self._seconds <= self.policy.search_share * (now - self._began)
        if not (force or allowed or self._searches <= self.policy.free_searches):
            return None
        found = self.search(frames, since)
        self._seconds += perf_counter() - now
        return found


def with_names_of_inputs(graph: Snapshot, inputs: Any, search: Search | None) -> Snapshot:
    """The graph of a call, where inputs that require no grad have the first name that a search found for them."""
    given: Sequence[Any] = inputs if isinstance(inputs, (tuple, list)) else [inputs]
    refs = graph.inputs
    if search is None or len(given) != len(refs) or all(ref.requires_grad or ref.paths for ref in refs):
        return graph
    wanted = {id(one) for one, ref in zip(given, refs) if not ref.requires_grad and not ref.paths}
    steps = {id(tensor): step for tensor, step in reversed(search.others) if id(tensor) in wanted}
    named = (replace(r, paths=(steps[id(o)].path(),)) if id(o) in steps else r for o, r in zip(given, refs))
    return replace(graph, inputs=tuple(named))
