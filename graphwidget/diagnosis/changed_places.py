"""A record with other places: the base of what a diagnosis changes in them before it begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from graphwidget.model import BackwardCall, CellRun, InnerCall, Place, Record, Scene, Sight, Snapshot, Write

__all__ = ["ChangedPlaces"]


class ChangedPlaces(ABC):
    """Changes each place in a record; a subclass says how, in `changed`."""

    def __init__(self) -> None:
        self._places: dict[tuple[Place, tuple[Place, ...]], Place] = {}

    @abstractmethod
    def changed(self, place: Place) -> Place:
        """What a place becomes."""

    def place(self, place: Place) -> Place:
        key = (place, place.stack)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self.changed(place)
        return found

    def record(self, record: Record) -> Record:
        return replace(
            record,
            snapshot=self.graph(record.snapshot),
            calls=tuple(map(self.call, record.calls)),
            writes=tuple(map(self.write, record.writes)),
            hidden=tuple(map(self.write, record.hidden)),
            idle=tuple(map(self.write, record.idle)),
            starved=tuple(replace(one, place=self.place(one.place)) for one in record.starved),
            unheld=tuple(replace(one, place=self.place(one.place)) for one in record.unheld),
            kept_grads=tuple(replace(one, place=self.place(one.place)) for one in record.kept_grads),
            lost_grads=tuple(replace(one, place=self.place(one.place)) for one in record.lost_grads),
            nonfinite=tuple(replace(one, place=self._known(one.place)) for one in record.nonfinite),
            false_flags=tuple(replace(one, place=self.place(one.place)) for one in record.false_flags),
            moved_while_frozen=tuple(replace(one, place=self.place(one.place)) for one in record.moved_while_frozen),
            empty_groups=tuple(replace(one, place=self.place(one.place)) for one in record.empty_groups),
            runs={n: self.run(run) for n, run in record.runs.items()},
            looks=tuple(replace(look, graph=self.graph(look.graph)) for look in record.looks),
            scenes={n: self.scene(scene) for n, scene in record.scenes.items()},
        )

    def run(self, run: CellRun) -> CellRun:
        return replace(run, error_place=self._known(run.error_place), scene=self.scene(run.scene))

    def scene(self, scene: Scene) -> Scene:
        return replace(scene, sights=self._sights(scene.sights), inside=self._sights(scene.inside))

    def _sights(self, sights: tuple[Sight, ...]) -> tuple[Sight, ...]:
        return tuple(map(self.sight, sights))

    def sight(self, sight: Sight) -> Sight:
        return replace(sight, place=self.place(sight.place))

    def _known(self, place: Place | None) -> Place | None:
        return self.place(place) if place is not None else None

    def graph(self, graph: Snapshot) -> Snapshot:
        return replace(graph, places=tuple(map(self.place, graph.places)))

    def write(self, write: Write) -> Write:
        return replace(write, place=self.place(write.place))

    def call(self, call: BackwardCall) -> BackwardCall:
        graph = self.graph(call.graph) if call.graph is not None else None
        place, failed = self.place(call.place), self._known(call.failed_place)
        return replace(call, place=place, failed_place=failed, graph=graph, inner=self._inner(call.inner))

    def _inner(self, inner: InnerCall | None) -> InnerCall | None:
        if inner is None:
            return None
        return replace(inner, call=self.call(inner.call), freed_at=self._known(inner.freed_at))
