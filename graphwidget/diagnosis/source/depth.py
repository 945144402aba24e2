"""Room on Python's stack: `ast` goes down an expression by recursion, and a sum of 500 terms is 500 levels deep.

A program that fails deep in a recursion of its own has left little room for that.
"""

from __future__ import annotations

import sys
import threading
from contextlib import ContextDecorator, suppress

__all__ = ["room"]

# Before Python 3.11 each call also takes some of the thread's memory for C.
LEVELS = 4_000 if sys.version_info >= (3, 11) else 1_500


class _Room(ContextDecorator):
    """A higher limit of recursion while something is asked. The limit is one for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(self._before + LEVELS)

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._inside -= 1
            # The program may have set another limit, or be deeper than the old one in another thread.
            if not self._inside and sys.getrecursionlimit() == self._before + LEVELS:
                with suppress(RecursionError):
                    sys.setrecursionlimit(self._before)


room = _Room()
