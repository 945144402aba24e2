"""What the page may name: ids of roots, handed out here and taken back when a root is gone."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphwidget.model import Drawing, Kind, Snapshot, TensorRef
from graphwidget.render.wire import OfferedRoot

__all__ = ["Offer", "Offers", "cells_to_rebuild"]

# Above this many nodes from several cells, working out each root's cells would hold up the kernel.
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
    _ids: dict[tuple[int, int, str | None], int] = field(default_factory=dict)
    _orders: dict[object, int] = field(default_factory=dict)
    _next: int = 1

    def update(self, drawing: Drawing) -> tuple[OfferedRoot, ...]:
        """Offer the roots of `drawing`, and nothing else from now on. A root that stays keeps its id.

        A root's `order` belongs to its path: a `loss` that is computed anew looks like the old one.
        """
        snapshot = drawing.snapshot
        refs = [ref for ref in snapshot.roots if ref.node >= 0]
        runs = cells_to_rebuild(snapshot, refs)
        names = [_name(snapshot, ref) for ref in refs]
        self._orders = {name: order for name, order in self._orders.items() if name in set(names)}
        ids: dict[tuple[int, int, str | None], int] = {}
        current: dict[int, Offer] = {}
        offered = []
        for ref, name, made_by in zip(refs, names, runs):
            key = (snapshot.uid[ref.node], ref.output_nr, ref.path)
            ids[key] = self._ids.get(key) or self._new_id()
            if not snapshot.ghost[ref.node]:  # a dead root is drawn, and nothing can be asked of it
                current[ids[key]] = Offer(ids[key], ref, key[0], made_by)
            offered.append(OfferedRoot(ids[key], ref, self._order(name), _numbers(snapshot, made_by)))
        # A request may be looking: it sees either the old picture or this one.
        self._ids, self.drawing, self.current = ids, drawing, current
        return tuple(offered)

    def past(self, snapshot: Snapshot) -> tuple[OfferedRoot, ...]:
        """The roots of a stored snapshot, to look at only: their ids are never offered."""
        known = {
            (offer.uid, offer.ref.output_nr): self._orders.get(offer.ref.path or "", 0)
            for offer in self.current.values()
        }
        return tuple(
            OfferedRoot(-1 - i, ref, known.get((snapshot.uid[ref.node], ref.output_nr), self._orders.get(ref.path, i)))
            for i, ref in enumerate(snapshot.roots)
            if ref.node >= 0
        )

    def _new_id(self) -> int:
        self._next += 1
        return self._next - 1

    def _order(self, name: str) -> int:
        if name not in self._orders:
            taken = set(self._orders.values())
            self._orders[name] = next(i for i in range(len(taken) + 1) if i not in taken)
        return self._orders[name]


def _name(snapshot: Snapshot, ref: TensorRef) -> str:
    """What a root's hue belongs to: its path; a root without one, or a dead one, has a hue of its own."""
    if ref.path is None or snapshot.ghost[ref.node]:
        return f"#{snapshot.uid[ref.node]}.{ref.output_nr}"
    return ref.path


def _numbers(snapshot: Snapshot, runs: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Execution counts of cell runs; None where one has none."""
    if runs is None:
        return None
    number = {}
    for place in snapshot.places:
        number[place.run] = place.outer_cell if place.outer_cell is not None else place.cell
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
