"""Looks up names before calls, within a share of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from types import FrameType

from graphwidget.capture.calls.policy import CallPolicy
from graphwidget.capture.owners.search import Search

__all__ = ["NameSearch"]


class NameSearch:
    """Bounds the searches of one cell.

    Parameters
    ----------
    search
        Looks names up: gets the frames of cells that are running, and the lowest sequence number that matters. (Leaves
        always matter.)
    """

    def __init__(self, policy: CallPolicy, search: Callable[[Sequence[FrameType], int], Search]) -> None:
        self.policy, self.search = policy, search
        self._searches, self._seconds, self._began = 0, 0.0, perf_counter()

    def begin_cell(self) -> None:
        """A new cell has all of its free searches."""
        self._searches, self._seconds, self._began = 0, 0.0, perf_counter()

    def find(self, frames: Sequence[FrameType], since: int, *, force: bool = False) -> Search | None:
        """Names of leaves and of what was made from a number on; None: searching has taken too much of the time."""
        now = perf_counter()
        self._searches += 1
        allowed = self._seconds <= self.policy.search_share * (now - self._began)
        if not (force or allowed or self._searches <= self.policy.free_searches):
            return None
        found = self.search(frames, since)
        self._seconds += perf_counter() - now
        return found
