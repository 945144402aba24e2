"""Which name to tell of what carried the old part over: one on the way to the node that failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from graphwidget.diagnosis.reuse.reuse import Meeting, Tensor, spoken, way
from graphwidget.diagnosis.source import paths as detaching
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import Place, in_order


@dataclass(frozen=True)
class Carrier:
    """The tensor of a meeting by which the later call came to the old part."""

    meeting: Meeting

    @cached_property
    def way(self) -> tuple[Tensor, ...]:
        """From the later call's root to the node at which it failed; empty where that is unknown."""
        return way(self.meeting.graph, self.meeting.later)

    @cached_property
    def path(self) -> str | None:
        """Its path: of the names that are known, one nearest to the old part."""
        found = (self._nearest(paths) for paths in self._known)
        leading = (path for paths in self._known for path in paths if self._leads(path))
        return next(filter(None, found), None) or next(leading, None) or self._nearest(self._on_it)

    @property
    def name(self) -> str:
        """What to call it: by its path, else by the old part's node."""
        if self.path is not None:
            return spoken(self.path)
        border = self.way[self._end][:1] if self._end >= 0 else self.meeting.boundary
        return self.meeting.graph.name_of(border[0]) if border else "the shared part"

    @property
    def built_at(self) -> Place | None:
        """Where it was made; if that is not known, where the way enters the old part."""
        at = self._on_the_way(self.path) if self.path is not None else None
        at = self._end if at is None else at
        place = self.meeting.graph.place_of(self.way[at][0]) if at >= 0 else None
        return place if place is not None and place.cell is not None else self.meeting.carrier_place

    @cached_property
    def _known(self) -> tuple[tuple[str, ...], ...]:
        """Its possible names, the best ones first."""
        meeting, place = self.meeting, self.meeting.later.place
        anew: set[str] = set()
        if meeting.in_loop and place.line:
            anew = source.forgotten(meeting.text_of_cell(place.cell), place.line)
        border = self.way[self._end] if self._end >= 0 else None
        now = (owner.path for owner in meeting.graph.owners if (owner.node, owner.output_nr) == border)
        here, lasting = _written(now), meeting.lasting(meeting.border_names, anew)
        still = tuple(path for path in lasting if path in here)
        return still, here, lasting, meeting.names_before, meeting.border_names

    @property
    def _on_it(self) -> tuple[str, ...]:
        """Names of anything on the way behind its root that is older than the call that freed."""
        old = {tensor for tensor in self.way[1:] if self.meeting.graph.seq[tensor[0]] < self.meeting.earlier.newest_seq}
        return _written(path for path, held in self._held.items() if not old.isdisjoint(held))

    @cached_property
    def _held(self) -> dict[str, set[Tensor]]:
        """What each path holds, or held at the earlier call."""
        held: dict[str, set[Tensor]] = {}
        here = self.meeting.graph
        for graph in filter(None, (here, self.meeting.earlier.graph)):
            for owner in graph.owners:
                held.setdefault(owner.path, set()).add((here.index_of.get(graph.uid[owner.node], -1), owner.output_nr))
        return held

    @cached_property
    def _end(self) -> int:
        """Where on the way the old part begins; -1: unknown."""
        return next((at for at, (index, _) in enumerate(self.way) if index in self.meeting.old), -1)

    def _nearest(self, paths: Iterable[str]) -> str | None:
        """The path that holds the tensor nearest to the old part; None: none holds one of the way."""
        nearest = {path: at for path in paths if (at := self._on_the_way(path)) is not None}
        return max(nearest, key=nearest.__getitem__, default=None)

    def _on_the_way(self, path: str) -> int | None:
        """The last place on the way, down to the old part, where a path holds the tensor."""
        held = self._held.get(path, ())
        return next((at for at in range(self._end, -1, -1) if self.way[at] in held), None)

    def _leads(self, path: str) -> bool:
        """Whether what goes by a name leads to the failing node, as far as that is known."""
        meeting = self.meeting
        if not meeting.names and self._end >= 0:  # what the line assigns that made the old part's first node
            return meeting.graph.place_of(self.way[self._end][0]) == meeting.carrier_place
        held = self._held.get(path)
        return held is None or not self.way or any(index in self._leading for index, _ in held)

    @cached_property
    def _leading(self) -> set[int]:
        return self.meeting.leading_to(self.way[-1][:1])


def _written(paths: Iterable[str]) -> tuple[str, ...]:
    """Those that a program can write."""
    return in_order({path for path in paths if detaching.is_code(detaching.local(path))})
