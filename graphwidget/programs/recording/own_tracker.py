"""A tracker for a process that has none, as its environment asks for; and records that end when the process does."""

from __future__ import annotations

import atexit
import linecache
import os
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from graphwidget.capture.tracker import Tracker
from graphwidget.notebook.session import current_tracker
from graphwidget.programs.journal import Journal
from graphwidget.record.naming import name_beside, stem_of_program
from graphwidget.record.parts import Ending, Header
from graphwidget.record.recording import main_file
from graphwidget.record.writer import MOST_MB, Writer

__all__ = ["at_the_end_of_forks", "follow_to_the_end", "track_this_process"]


def track_this_process(place: str, most_mb: float | None) -> None:
    """Start a tracker, and record what it sees until the process ends."""
    tracker = Tracker(forecaster=_once_needed("engine.forecast", "forecast"), diagnose=_diagnose, explain=_explain)
    tracker.start()
    follow_to_the_end(tracker, place, most_mb)
    frame = _main_frame()
    if frame is None:  # no file: `-c`, a prompt, a process of a pool. What they call may be in files of the user's own
        tracker.begin_cell(None, "")
        return
    filename = frame.f_code.co_filename
    own = tracker.own_code(filename)
    tracker.begin_cell(
        None,
        "" if own else "".join(linecache.getlines(filename)),
        filename=filename,
        frame=frame,
        script=frame.f_code if own else None,
    )


def follow_to_the_end(tracker: Tracker, place: str, most_mb: float | None) -> None:
    """Record what a tracker sees until the process ends, also in forks of it."""
    where = partial(name_beside, place, stem_of_program())
    header = partial(Header.of_this_process, main_file(), tuple(sys.argv[1:]))
    writer = Writer(tracker, where, header, most_mb=most_mb or MOST_MB, in_fork=where)
    atexit.register(_end, tracker, writer)
    at_the_end_of_forks(partial(_end, tracker, writer))


def _end(tracker: Tracker, writer: Writer) -> None:
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    journal = Journal(place_of=tracker.place_of_error, steps=1)
    if error is not None:
        place = tracker.place_of_error(error)
        journal.note(error, None, None, place.outer_line if place is not None else None)
    tracker.end_cell(error)
    if writer.output is not None or journal.errors or tracker.log.count:
        writer.end(Ending(tuple(journal.errors), journal.exit or None))
    tracker.stop()


def at_the_end_of_forks(end: Callable[[], None]) -> None:
    """Have `end` called in forks that `multiprocessing` makes: they end without what `atexit` runs."""
    from multiprocessing import util

    def in_child(_: object) -> None:
        util.Finalize(None, end, exitpriority=-100)

    util.register_after_fork(end, in_child)
    _kept.append(end)


_kept: list[object] = []  # `multiprocessing` refers to what it is to call weakly


def _main_frame() -> FrameType | None:
    """The frame of the program's file, if that is what imports torch."""
    frame: FrameType | None = sys._getframe()
    variables = sys.modules["__main__"].__dict__
    while frame is not None and not (frame.f_globals is variables and frame.f_code.co_name == "<module>"):
        frame = frame.f_back
    return frame if frame is not None and os.path.isfile(frame.f_code.co_filename) else None


def _once_needed(module: str, name: str) -> Callable[..., Any]:
    """A function whose module is imported at its first call."""
    from importlib import import_module

    def call(*args: Any, **options: Any) -> Any:
        return getattr(import_module(f"graphwidget.{module}"), name)(*args, **options)

    return call


_diagnose = _once_needed("diagnosis.diagnose", "diagnose")


def _explain(record: Any, call: Any) -> str:
    """The note under a traceback, unless another tracker of this process writes one."""
    if current_tracker() is not None:
        return ""
    from graphwidget.notebook.notes import explain_call

    return explain_call(record, call, "graphwidget explain RECORD.gwz")
