"""Tracking of a block of a script."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from graphwidget.capture.calls.log import Forecaster
from graphwidget.capture.lines.code_setting import from_settings
from graphwidget.capture.tracker import HISTORY_BYTES, Tracker
from graphwidget.model import BackwardCall, Finding, Record

__all__ = ["track"]


@contextmanager
def track(
    *,
    forecaster: Forecaster | None = None,
    diagnose: Callable[[Record], Sequence[Finding]] | None = None,
    explain: Callable[[Record, BackwardCall], str] | None = None,
    history_bytes: int = HISTORY_BYTES,
    code: Sequence[str] = (),
    depth: int = 2,
) -> Iterator[Tracker]:
    """Track a block of a script: the file of the caller is what runs.

    Parameters
    ----------
    code
        Packages, modules or folders whose lines are recorded too, although they are installed; with ``-`` in front,
        those whose lines are not.
    depth
        Number of frames up to the caller; for functions that wrap this one.
    """
    frame: FrameType | None = sys._getframe(depth)
    assert frame is not None
    filename = frame.f_code.co_filename
    variables = frame.f_globals
    tracker = Tracker(
        lambda: variables,
        forecaster=forecaster,
        diagnose=diagnose,
        explain=explain,
        history_bytes=history_bytes,
        own_code=from_settings(code),
    )
    tracker.start()
    in_file = tracker.own_code(filename)
    tracker.begin_cell(
        None,
        "" if in_file else "".join(linecache.getlines(filename)),
        filename=filename,
        frame=frame,
        script=frame.f_code if in_file else None,
    )
    del frame
    try:
        yield tracker
    finally:
        tracker.end_cell(sys.exc_info()[1])
        tracker.stop()
