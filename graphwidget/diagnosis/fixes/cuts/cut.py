"""A cut: an edit that detaches tensors, and the edges of the graph that it removes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from graphwidget.diagnosis.reuse.named_edges import NamedEdge, NamedEdges
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import detaching
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import local
from graphwidget.engine.what_if import reachable

__all__ = ["Cut", "CuttingContext", "edges_of"]

_LEAF = ".detach().requires_grad_()"


@dataclass(frozen=True)
class Cut:
    """An edit that detaches tensors, with its sentence.

    Attributes
    ----------
    edges, before
        Positions of the edges that the edit removes: of the later call's graph, of the earlier call's graph.
    sure
        False: it rebuilds a container of unknown kind, or reads a name that may have no tensor.
    as_leaves
        The detached tensors require grad.
    a_guess
        It is worth nothing unless a simulation shows that it works, and no trained leaf loses its gradient.
    """

    sentence: str
    at: Spot | None
    edits: Edits
    edges: frozenset[int]
    before: frozenset[int] = frozenset()
    sure: bool = True
    as_leaves: bool = False
    a_guess: bool = False

    def with_leaves(self) -> Cut | None:
        """The same cut, after which the tensors require grad, as leaves. None: its edits detach in another way."""
        edits = tuple(replace(one, new=re.sub(r"\.detach\(\)(?=$|\n|;)", _LEAF, one.new)) for one in self.edits)
        sentence = self.sentence.replace(".detach()`", f"{_LEAF}`")
        if edits == self.edits:
            return None
        return replace(self, sentence=sentence, edits=edits, as_leaves=True)


def edges_of(named: Iterable[NamedEdge], paths: Collection[str]) -> frozenset[int]:
    """The edges that detaching the tensors of these paths removes: those whose tensors have no other name."""
    gone = set(map(local, paths))
    return frozenset(one.edge for one in named if one.names <= gone)


class CuttingContext:
    """The parts of which all cuts of one setting are made: texts of cells, lines that detach, edges with names."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.reuse = setting.reuse

    def text(self, spot: Spot | None) -> str:
        """The text of the cell of a (cell, line)."""
        return self.setting.text_of_cell(spot[0]) if spot is not None else ""

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The paths to cut between two passes: tensors that already build on the old part, or else the carriers.

        Those by which the carriers were read: a name that they had once may be that of another tensor now.
        """
        paths = self.reuse.unrun_paths or self.setting.carrier_names
        read = {name for one in self.later_edges().all if one.tensor in self.reuse.boundary for name in one.names}
        if not read or not read.isdisjoint(map(local, paths)):
            return paths
        now = self.reuse.graph.owners
        return tuple(o.path for o in now if o.node in self.reuse.boundary and local(o.path) in read) or paths

    @cached_property
    def cells(self) -> dict[int, str]:
        """The number of each cell and its text."""
        return Cells.of(self.reuse.record).texts

    @property
    def files(self) -> frozenset[int]:
        """The numbers of the cells that are files."""
        return Cells.of(self.reuse.record).files

    @cached_property
    def detaching(self) -> detaching.Detaching:
        """Writes the lines that cut the graph at tensors."""
        texts = [run.source for run in self.reuse.record.runs.values()]
        known = [graph for graph in (self.reuse.earlier.graph, self.reuse.graph) if graph is not None]
        return detaching.Detaching(texts, [owner for graph in known for owner in graph.owners])

    def later_edges(self, forgotten: Callable[[str], bool] = lambda _: False) -> NamedEdges:
        """The named edges to which the later call's own part leads, without names that carry nothing over."""
        return NamedEdges(self.setting, self.reuse.graph, self.reuse.new, forgotten)

    @cached_property
    def earlier_edges(self) -> NamedEdges | None:
        """The named edges that the earlier call reached, on the graph as it was then."""
        earlier = self.reuse.earlier
        if earlier.graph is None:
            return None
        inside = reachable(earlier.graph, (root.node for root in earlier.roots))
        return NamedEdges(self.setting, earlier.graph, inside)
