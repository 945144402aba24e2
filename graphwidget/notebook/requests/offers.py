"""Offers: ids of roots that the page may name, given out here and withdrawn when a root is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphwidget.capture.calls.hues import Hues
from graphwidget.model import Drawing, Kind, Snapshot, TensorRef
from graphwidget.render.wire import OfferedRoot

__all__ = ["Offer", "Offers", "cells_to_rebuild"]

# Above this many nodes from several cells, computing each root's cells would block the kernel.
_MAX_NODES = 50_000


@dataclass(frozen=True, slots=True)
class Offer:
    """A root under the id that the page knows. `runs` are the cell runs that made its graph, None: unknown."""

    id: int
    ref: TensorRef
    uid: int
    runs: tuple[int, ...] | None


@dataclass
class Offers:
    """The roots of the picture that the page shows. `drawing` is that picture."""

    drawing: Drawing = field(default_factory=lambda: Drawing(Snapshot()))
    current: dict[int, Offer] = field(default_factory=dict)
    _hues: Hues = field(default_factory=Hues)
    _settles: bool = True  # whether this object assigns the looks of roots itself
    _ids: dict[tuple[int, int, str | None], int] = field(default_factory=dict)
    _next: int = 1

    def follow(self, hues: Hues | None) -> None:
        """From now on a tracker assigns the looks of roots; None: there is no tracker."""
        self._hues, self._settles = hues or Hues(), hues is None

    def update(self, drawing: Drawing) -> tuple[OfferedRoot, ...]:
        """Offer the roots of `drawing`, and nothing else from now on. A root that stays keeps its id."""
        snapshot = drawing.snapshot
        refs = [ref for ref in snapshot.roots if ref.node >= 0]
        runs = cells_to_rebuild(snapshot, refs)
        if self._settles:
            self._hues.settle(snapshot)
        orders = self._orders(snapshot, refs)
        numbers = _numbers_of_runs(snapshot)
        ids: dict[tuple[int, int, str | None], int] = {}
        current: dict[int, Offer] = {}
        offered = []
        for ref, order, made_by in zip(refs, orders, runs):
            key = (snapshot.uid[ref.node], ref.output_nr, ref.path)
            ids[key] = self._ids.get(key) or self._new_id()
            # A root that is dead, or has no name in the program any more, is drawn but cannot be used in a request.
            if not snapshot.ghost[ref.node] and not ref.known_as:
                current[ids[key]] = Offer(ids[key], ref, key[0], made_by)
            offered.append(OfferedRoot(ids[key], ref, order, _numbers(numbers, made_by)))
        # A request in another thread sees either the old picture or this one.
        self._ids, self.drawing, self.current = ids, drawing, current
        return tuple(offered)

    def withdraw(self, drawing: Drawing) -> tuple[OfferedRoot, ...]:
        """Offer nothing from now on; the roots of `drawing`, only to be drawn."""
        self._ids, self.drawing, self.current = {}, drawing, {}
        return self.past(drawing.snapshot)

    def past(self, snapshot: Snapshot) -> tuple[OfferedRoot, ...]:
        """The roots of a stored snapshot, only to be drawn: their ids are never offered."""
        refs = [ref for ref in snapshot.roots if ref.node >= 0]
        orders = self._orders(snapshot, refs)
        return tuple(OfferedRoot(-1 - i, ref, order) for i, (ref, order) in enumerate(zip(refs, orders)))

    def _new_id(self) -> int:
        self._next += 1
        return self._next - 1

    def _orders(self, snapshot: Snapshot, refs: list[TensorRef]) -> list[int]:
        return self._hues.look(snapshot, refs)


def _numbers_of_runs(snapshot: Snapshot) -> dict[int | None, int | None]:
    """Run of a cell -> its execution count."""
    places = snapshot.places
    return {place.run: place.outer_cell if place.outer_cell is not None else place.cell for place in places}


def _numbers(number: Mapping[int | None, int | None], runs: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Execution counts of cell runs; None where one has none."""
    if runs is None:
        return None
    numbers = [number.get(run) for run in runs]
    return None if None in numbers else tuple(n for n in numbers if n is not None)


def cells_to_rebuild(snapshot: Snapshot, refs: list[TensorRef]) -> list[tuple[int, ...] | None]:
    """For each root the runs of the cells that made its nodes, oldest first; None where one is unknown."""
    runs = [place.run for place in snapshot.places]
    used = {at for at, kind in zip(snapshot.place, snapshot.kind) if kind != Kind.ACCUMULATE}
    made_by = {runs[at] if at >= 0 else None for at in used}
    if len(made_by) == 1:
        only = made_by.pop()
        return [None if only is None else (only,)] * len(refs)
    if len(snapshot) > _MAX_NODES:
        return [None] * len(refs)
    return [_runs_below(snapshot, ref.node, runs) for ref in refs]


def _runs_below(snapshot: Snapshot, root: int, runs: list[int | None]) -> tuple[int, ...] | None:
    seen = {root}
    work = [root]
    found: set[int] = set()
    while work:
        node = work.pop()
        if snapshot.kind[node] != Kind.ACCUMULATE:
            at = snapshot.place[node]
            run = runs[at] if at >= 0 else None
            if run is None:
                return None
            found.add(run)
        for target in snapshot.next(node):
            if target not in seen:
                seen.add(target)
                work.append(target)
    return tuple(sorted(found))
