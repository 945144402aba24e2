"""While lines are traced on Python 3.10 and 3.11, every function that is called costs time: tracing rests in torch's.

The line tracer hears of each call. Where a cell calls a function of torch that cannot lead back into a cell, tracing is
switched off, and comes back when that function's frame is gone. Python tells of that without running any code of
ours: the frame owns a `Rest` (as its trace function), and the weak reference to it calls `sys.settrace` when it dies.
(A `__del__` would do, but a Ctrl+C that came while it runs would be lost.)

Where an exception could be caught in a cell tracing does not rest: the exception keeps the frame.
"""

from __future__ import annotations

import sys
import weakref
from operator import methodcaller
from types import FrameType
from typing import Any

__all__ = ["Rest", "Resting", "rest_until_gone"]


class Rest:
    """Owned by a frame in which tracing rests, as its trace function."""

    __slots__ = ("__weakref__",)

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        """Tracing is on again, for a part of what the frame calls: its own lines are of no interest."""


class Resting(weakref.ref):  # type: ignore[type-arg]
    """Watches a `Rest`: as long as it lives, tracing comes back by itself."""

    __slots__ = ()
    settrace = sys.settrace


def rest_until_gone(frame: FrameType, trace: Any) -> tuple[Rest, Resting]:
    """Switch tracing off until this frame is gone. To be called and returned by its trace function."""
    frame.f_trace_lines = False
    rest = Rest()
    watching = Resting(rest, methodcaller("settrace", trace))
    sys.settrace(None)
    return rest, watching
