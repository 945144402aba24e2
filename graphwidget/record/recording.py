"""Begins and ends a record: of a block in code, of a program that is run, of a process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from graphwidget.model import CellError
from graphwidget.record.naming import name_beside
from graphwidget.record.parts import Ending, Header
from graphwidget.record.writer import MOST_MB, Writer

if TYPE_CHECKING:
    from graphwidget.capture.tracker import Tracker

__all__ = ["check_bound", "main_file", "recorded"]

LEAST_MB, MOST_BOUND_MB = 1.0, 4000.0


@contextmanager
def recorded(path: str | os.PathLike[str] | None, most_mb: float = MOST_MB) -> Iterator[Callable[[Tracker], None]]:
    """Give a function that records what a tracker sees until this block ends. Without a path, nothing is recorded.

    Raises
    ------
    ValueError
        If the bound is too low for any record.
    """
    check_bound(most_mb)
    begun: list[tuple[Tracker, Writer]] = []

    def follow(tracker: Tracker) -> None:
        if path is not None:
            name = os.path.abspath(path)
            writer = Writer(
                tracker,
                lambda: os.fspath(path),
                partial(Header.of_this_process, main_file()),
                most_mb=most_mb,
                in_fork=partial(name_beside, name, ""),
            )
            begun.append((tracker, writer))
            writer.begin()

    try:
        yield follow
    finally:
        for tracker, writer in begun:
            writer.end(Ending(_errors(tracker, sys.exc_info()[1])))


def check_bound(most_mb: float) -> None:
    """Check a bound in megabytes.

    Raises
    ------
    ValueError
        If it is too low for any record, or no number.
    """
    if not LEAST_MB <= most_mb <= MOST_BOUND_MB:
        raise ValueError(f"a record is bounded by {LEAST_MB:g} to {MOST_BOUND_MB:g} MB, not by {most_mb:g}")


def main_file() -> str:
    """The file of the program, as it was started."""
    return str(getattr(sys.modules["__main__"], "__file__", None) or "")


def _errors(tracker: Tracker, error: BaseException | None) -> tuple[CellError, ...]:
    if error is None:
        return ()
    place = tracker.place_of_error(error)
    line = place.outer_line if place is not None else None
    return (CellError(1, None, None, line, type(error).__name__, _message(error), place=place),)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # the user's own __str__
        return BaseException.__str__(error)
