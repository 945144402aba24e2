"""Thresholds of the tracker: how much it remembers, and how much time it may take."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphwidget.capture.calls.counting.policy import CallPolicy

__all__ = ["TrackerPolicy"]


@dataclass(frozen=True)
class TrackerPolicy:
    """Thresholds of a `Tracker`.

    Attributes
    ----------
    calls
        Thresholds for the reading of calls.
    max_runs
        Number of cell runs whose source is kept.
    max_uids
        Number of nodes that are remembered before the dead ones are forgotten.
    max_scenes
        Number of failed calls whose scene is kept.
    max_notes
        Number of errors of one cell that get a note.
    search_seconds
        Time for one search for names.
    read_at_once
        Number of nodes that are read right at the end of a cell, even if the kernel is idle afterwards.
    free_seconds, share
        Reading everything at the ends of cells may take this many seconds; after that, this share of the time since
        watching began.
    soon_seconds
        Time from a cell's end until reading continues: the reply to the cell and messages that have come in go first.
    quiet_seconds
        Time without another cell before listeners are called, if cells follow each other at once.
    tell_seconds
        Least time between two counted calls that listeners are called for.
    """

    calls: CallPolicy = field(default_factory=CallPolicy)
    max_runs: int = 5_000
    max_uids: int = 20_000
    max_scenes: int = 100
    max_notes: int = 10
    search_seconds: float = 0.02
    read_at_once: int = 10_000
    free_seconds: float = 1.0
    share: float = 0.05
    soon_seconds: float = 0.001
    quiet_seconds: float = 0.1
    tell_seconds: float = 0.1
