"""How closely backward calls are read: the thresholds between a full record, a walk and a count."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CallPolicy"]


@dataclass(frozen=True)
class CallPolicy:
    """Thresholds, counted for each line of a cell.

    Attributes
    ----------
    always_in_full
        The first calls of a line, which are read in full however long that takes.
    in_full
        As many calls are read in full while that takes less than `full_share` of the time since the cell began.
    every
        After these, one call out of so many is read in full, under the same condition.
    walked
        The first calls whose graph is walked, if they are not read in full.
    walk_share
        Further graphs are walked while all of our work takes less than this share of the time. Beyond it the call is
        compared without a walk. In a loop of 24 tiny layers (1.2 ms an iteration without us) that saves 14 % of these
        1.2 ms, in one of two layers (0.35 ms) 14 %, in one of 1.1 ms and two layers nothing that can be measured.
    max_models
        Shapes of calls that are remembered.
    free_searches
        Searches for names before calls of one cell, whatever they take.
    search_share
        Share of the time for further searches.
    """

    always_in_full: int = 3
    in_full: int = 16
    full_share: float = 0.01
    every: int = 64
    walked: int = 16
    walk_share: float = 0.01
    max_models: int = 256
    free_searches: int = 50
    search_share: float = 0.02
