"""Thresholds that decide whether a backward call is read in full, walked, or only counted."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CallPolicy"]


@dataclass(frozen=True)
class CallPolicy:
    """Thresholds. Calls are counted separately for each line of a cell.

    Attributes
    ----------
    always_in_full
        Number of first calls that are always read in full.
    in_full
        Number of first calls that are read in full while that takes less than `full_share` of the time since the cell
        began.
    every
        After these, one call in this many is read in full, under the same condition.
    walked
        Number of first calls whose graph is walked, if they are not read in full.
    walk_share
        Later graphs are walked while all our work takes less than this share of the time. Above it, the call is
        compared without a walk. In a loop of 24 tiny layers (1.2 ms an iteration without us) that saves 14 % of these
        1.2 ms, in one of two layers (0.35 ms) 14 %, in one of 1.1 ms and two layers nothing that can be measured.
    max_models
        Number of shapes of graphs that are remembered.
    max_starts
        Number of earlier calls of one loop that a sample of growing graphs may cover.
    free_searches
        Number of searches for names before the calls of one cell, regardless of their time.
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
    max_starts: int = 1_000
    free_searches: int = 50
    search_share: float = 0.02
