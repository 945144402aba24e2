"""The edges along which lines use tensors by their names: an edit that detaches a name cuts these, and no others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.paths import is_code, local, root_of
from graphwidget.diagnosis.wording import is_hidden, source_line, spoken
from graphwidget.model import Kind, Place, Snapshot

__all__ = ["NamedEdge", "NamedEdges"]


@dataclass(frozen=True)
class NamedEdge:
    """An edge (its position), and the names by which the line that made it may have read the tensor."""

    edge: int
    user: int
    tensor: int
    names: frozenset[str]


@dataclass
class NamedEdges:
    """The edges from some nodes to tensors that have names.

    Parameters
    ----------
    users
        Nodes (indices) of `graph`.
    forgotten
        Whether a path carries nothing over to the next pass.
    """

    setting: Setting
    graph: Snapshot
    users: Collection[int]
    forgotten: Callable[[str], bool] = lambda _: False
    _read: dict[tuple[object, ...], frozenset[str]] = field(default_factory=dict)

    @cached_property
    def all(self) -> tuple[NamedEdge, ...]:
        """All of them, in the order of their positions."""
        graph = self.graph
        found: list[NamedEdge] = []
        for user in sorted(self.users):
            for edge in range(graph.edge_start[user], graph.edge_start[user + 1]):
                names = self._names_there(user, graph.edge_to[edge])
                if names:
                    found.append(NamedEdge(edge, user, graph.edge_to[edge], names))
        return tuple(found)

    def carried(self) -> Iterator[NamedEdge]:
        """The edges from nodes of the later call's pass to tensors made before it."""
        before = self.setting.reuse.is_from_before
        return (one for one in self.all if before(one.tensor) and not before(one.user))

    def read_at(self, place: Place) -> Iterator[NamedEdge]:
        """The edges of a line, in all its runs, and of the functions that it called."""
        line = source_line(place)
        for one in self.all:
            made = self.graph.place_of(one.user)
            if made is not None and line in map(source_line, (made, *made.stack)):
                yield one

    def after(self, line: tuple[int, int]) -> Iterator[NamedEdge]:
        """The edges from nodes made after (cell, line) ran to tensors made until then."""
        graph = self.graph
        there = [graph.seq[i] for i in range(len(graph)) if line in _lines(graph.place_of(i))]
        last = max(there, default=-1)
        return (one for one in self.all if graph.seq[one.tensor] <= last < graph.seq[one.user])

    def _names_there(self, user: int, tensor: int) -> frozenset[str]:
        """The names by which a node's line reads a tensor. If it reads none, a function made the node: all names."""
        names = self._names.get(tensor)
        place = self.graph.place_of(user)
        if not names or place is None:
            return names or frozenset()
        key = (names, tensor, place.cell, place.line, place.outer_cell, place.outer_line)  # the same in every iteration
        if key not in self._read:
            reads = [self._names_read(*line) for line in _lines(place)]
            # A variable that the line reads is the tensor itself. An attribute may have another root in its function.
            known = names & self._now[tensor] & reads[0] if reads else frozenset[str]()
            known = known or frozenset(name for name in names if any(root_of(name) in read for read in reads)) or names
            newer = self._read_of_others.get(source_line(place), set()) - self._now[tensor]
            self._read[key] = known - newer or names - newer or known
        return self._read[key]

    @cached_property
    def _read_of_others(self) -> dict[tuple[object, int | None], set[str]]:
        """By line, the names of now of the tensors that its nodes use: there each of them has one meaning.

        In ``last - anchor`` an old tensor that was `last` once, and is `anchor` now, was read as `anchor`.
        """
        graph, found = self.graph, dict[tuple[object, int | None], set[str]]()
        for user in self.users:
            place = graph.place_of(user)
            for tensor in graph.next(user) if place is not None else ():
                if tensor in self._now and graph.place_of(tensor) != place:
                    found.setdefault(source_line(place), set()).update(self._now[tensor])  # type: ignore[arg-type]
        return found

    @cached_property
    def _now(self) -> dict[int, set[str]]:
        """The names that tensors had just before the later call."""
        found: dict[int, set[str]] = defaultdict(set)
        now = self.setting.reuse.graph
        for owner in now.owners:
            index = self.graph.index_of.get(now.uid[owner.node])
            if index is not None and owner.kind != "out":
                found[index].add(local(_as_written(owner.path)))
        return found

    @cached_property
    def _names(self) -> dict[int, frozenset[str]]:
        """Names under which the program can reach each tensor, without those that carry nothing over.

        They are the names now and at the earlier call; without such names, the targets of the tensor's line.
        """
        graph, seen = self.graph, (self.setting.reuse.graph, self.setting.reuse.earlier.graph)
        known = [(graph.index_of.get(one.uid[o.node], -1), o) for one in seen if one is not None for o in one.owners]
        found: dict[int, set[str]] = {}
        for index, owner in known:
            path = _as_written(owner.path)
            if index >= 0 and owner.kind != "out" and is_code(local(path)):
                found.setdefault(index, set()).add(path)
        paths = (path for some in found.values() for path in some)
        holders = {root_of(path) for path in paths if not local(path).isidentifier()}
        lasting = {index: self._lasting(paths) for index, paths in found.items()}
        targets: dict[tuple[int | None, int | None], frozenset[str]] = {}  # the same in every iteration
        for index in (one for one in self._assigned if one not in found):
            made = graph.place_of(index)
            if made is None:
                continue
            line = made.cell, made.line
            if line not in targets:
                statements = source.statements_at(self.setting.text_of_cell(made.cell), made.line or 0)
                assigned = set(source.targets(statements[-1])) - holders if statements else set()
                targets[line] = self._lasting(assigned)
            lasting[index] = targets[line]
        return lasting

    def _lasting(self, paths: Collection[str]) -> frozenset[str]:
        return frozenset(local(path) for path in paths if not self.forgotten(path))

    @property
    def _assigned(self) -> list[int]:
        """The last node that each run of a line made."""
        graph = self.graph
        last: dict[int, int] = {}
        for index, (place, kind, seq) in enumerate(zip(graph.place, graph.kind, graph.seq)):
            if place >= 0 and kind != Kind.ACCUMULATE and (place not in last or seq > graph.seq[last[place]]):
                last[place] = index
        return list(last.values())

    def _names_read(self, cell: int, line: int) -> set[str]:
        statements = source.statements_at(self.setting.text_of_cell(cell), line)
        return source.names_read(statements[-1]) if statements else set()


def _as_written(path: str) -> str:
    """A path; of a variable that a closure keeps, or a generator has, the name by which their lines read it."""
    return spoken(path) if is_hidden(path) else path


def _lines(place: Place | None) -> list[tuple[int, int]]:
    """(cell, line) of the line that made something, and of the one of the cell that ran."""
    if place is None:
        return []
    pairs = ((place.cell, place.line), (place.outer_cell, place.outer_line))
    return [(cell, line) for cell, line in pairs if cell is not None and line is not None]
