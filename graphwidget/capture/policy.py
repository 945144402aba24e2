"""What the tracker remembers, and how much of the time it may take: its thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphwidget.capture.calls.policy import CallPolicy

__all__ = ["TrackerPolicy"]


@dataclass(frozen=True)
class TrackerPolicy:
    """Thresholds of a `Tracker`.

    Attributes
    ----------
    calls
        How closely calls are read.
    max_runs
        Cell runs whose source is kept.
    max_uids
        Nodes that are remembered before the dead among them are forgotten.
    max_scenes
        Failed calls whose measured surroundings are kept.
    max_starts
        Calls of one loop that a sample of what piles up goes back to.
    max_notes
        Errors of one cell that get a note.
    search_seconds
        For one search for names.
    read_at_once
        Nodes that are read at the end of a cell, even if the kernel is idle afterwards.
    free_seconds, share
        Reading everything at the ends of cells is free for so many seconds; after that it may take this share of the
        time since watching began.
    soon_seconds
        From a cell's end until reading goes on: the answer to the cell goes first, and whatever has come in.
    quiet_seconds
        From a cell's end without another cell, until listeners hear of it where cells follow each other at once.
    tell_seconds
        Between two counted calls that listeners hear of.
    """

    calls: CallPolicy = field(default_factory=CallPolicy)
    max_runs: int = 5_000
    max_uids: int = 20_000
    max_scenes: int = 100
    max_starts: int = 1_000
    max_notes: int = 10
    search_seconds: float = 0.02
    read_at_once: int = 10_000
    free_seconds: float = 1.0
    share: float = 0.05
    soon_seconds: float = 0.001
    quiet_seconds: float = 0.1
    tell_seconds: float = 0.1
