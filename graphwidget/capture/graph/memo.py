"""What the latest snapshots saw besides what they tell, so that the next one need only look for what has changed.

A memo is plain data beside a snapshot (`Snapshot.memo`): 12 bytes a slot, 4 a node. Only the latest few are kept: of
an older snapshot as much is made up again as its own columns tell.
"""

from __future__ import annotations

from array import array
from collections import deque
from itertools import repeat

from graphwidget.capture.graph.tables import NOTHING, Look, Numbered
from graphwidget.model import Snapshot

__all__ = ["Memo", "Memos"]

KEPT = 2  # the last snapshot of everything, and one of a call
MOST_LOOKS = 10_000  # a table that has become longer (each in-place write makes new looks) is begun anew


class Memo:
    """What goes with one snapshot. Holds no tensor and no node.

    Attributes
    ----------
    looks
        A table of looks, which the next snapshot goes on with.
    look
        The number of each slot's look.
    key
        The address of each slot's memory, -1: none.
    heights
        How high each node stands; see `deep`. Empty: not known.
    """

    __slots__ = ("heights", "key", "look", "looks")

    def __init__(self, looks: Numbered, look: array[int], key: array[int], heights: array[int]) -> None:
        self.looks, self.look, self.key, self.heights = looks, look, key, heights

    @classmethod
    def made_up(cls, snapshot: Snapshot) -> Memo:
        """What a snapshot alone tells. No tensor looks like any of these: types are names here."""
        looks = Numbered({Look(): NOTHING})
        rows = zip(
            snapshot.slot_version,
            repeat(True),
            map((*snapshot.dtypes, None).__getitem__, snapshot.slot_dtype),
            map((*snapshot.shapes, None).__getitem__, snapshot.slot_shape),
            snapshot.slot_bytes,
            strict=False,
        )
        key = map((*snapshot.storages.key, -1).__getitem__, snapshot.slot_storage)
        return cls(looks, array("i", map(looks.__getitem__, rows)), array("q", key), array("i"))


class Memos:
    """The latest memos."""

    def __init__(self) -> None:
        self._kept: deque[Memo] = deque()

    def keep(self, memo: Memo) -> Memo:
        """Keep this one, and of the older ones the largest. The contents of the others are dropped."""
        self._kept.append(memo)
        if len(self._kept) > KEPT:
            old = min(list(self._kept)[:-1], key=lambda kept: len(kept.look))
            self._kept = deque(kept for kept in self._kept if kept is not old)
            old.looks, old.look, old.key, old.heights = Numbered(), array("i"), array("q"), array("i")
        return memo

    def of(self, snapshot: Snapshot | None) -> Memo:
        """The memo of a snapshot, an empty one if there is none."""
        if snapshot is None:
            return Memo.made_up(Snapshot())
        memo = snapshot.memo
        if any(memo is kept for kept in self._kept) and len(memo.looks) <= MOST_LOOKS:
            return memo  # type: ignore[no-any-return]
        return Memo.made_up(snapshot)
