"""Searches for names before calls, within a share of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from types import FrameType

from graphwidget.capture.calls.counting.policy import CallPolicy
from graphwidget.capture.owners.search import Search

__all__ = ["NameSearch"]


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
