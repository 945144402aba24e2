"""What happened before a failing call, put together once for the findings and the fixes.

A second backward is a *meeting*: call `later` reached nodes that call `earlier` had executed. The
nodes the earlier call executed are the *old part*; what `later` brought along is the *new part*;
tensors at the border, the *carriers*, tie them together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from graphwidget.analysis import source
from graphwidget.analysis.surgery import reachable
from graphwidget.model import BackwardCall, CellRun, Kind, Place, Record, Snapshot, TensorRef, Write


def call_at(calls: Iterable[BackwardCall], n: int | None) -> BackwardCall | None:
    return next((call for call in calls if call.n == n), None)


def where(place: Place | None) -> str:
    """``In[2], line 4``; empty when unknown. The outermost frame: the line that the user ran."""
    if place is None or place.cell is None:
        return ""
    return f"In[{place.cell}], line {place.line}"


def iteration(place: Place | None) -> str:
    return f"iteration {place.iteration}" if place is not None and place.iteration is not None else ""


@dataclass(frozen=True)
class Meeting:
    """A call and the earlier one whose nodes it reached again. `graph` is the graph just before `later`."""

    record: Record
    later: BackwardCall
    earlier: BackwardCall
    graph: Snapshot

    @cached_property
    def old(self) -> frozenset[int]:
        """Indices of the nodes that the earlier call executed, without leaves."""
        executed = set(self.earlier.executed)
        graph = self.graph
        freed = {
            index
            for index in range(len(graph))
            if any(graph.slot_freed_by[slot] == self.earlier.n for slot in graph.slots_of(index))
        }
        ran = {index for uid in executed if (index := graph.index_of.get(uid)) is not None}
        return frozenset(index for index in freed | ran if graph.kind[index] != Kind.ACCUMULATE)

    @cached_property
    def root_indices(self) -> tuple[int, ...]:
        return tuple(root.node for root in self.later.roots if root.node >= 0)

    @cached_property
    def reached(self) -> frozenset[int]:
        return frozenset(reachable(self.graph, self.root_indices))

    @cached_property
    def new(self) -> frozenset[int]:
        """Indices of what the later call brought along: reached, not old, no leaf."""
        return frozenset(i for i in self.reached - self.old if self.graph.kind[i] != Kind.ACCUMULATE)

    @property
    def same_root(self) -> bool:
        """Whether the later call began inside the old part: the same tensor was run again."""
        return any(index in self.old for index in self.root_indices)

    @cached_property
    def built_after(self) -> bool:
        """Whether anything of the new part was made after the earlier call began."""
        return any(self.graph.seq[i] >= self.earlier.newest_seq for i in self.new)

    @cached_property
    def boundary(self) -> tuple[int, ...]:
        """Old nodes that the new part, or the root itself, leads into."""
        edges = {to for index in self.new for to in self.graph.next(index) if to in self.old}
        return tuple(sorted(edges | {i for i in self.root_indices if i in self.old}))

    @cached_property
    def exclusive_leaves(self) -> frozenset[int]:
        """Leaves that get their gradient only through the old part: detaching would cut them off."""
        outside = {to for index in self.new for to in self.graph.next(index) if to not in self.old}
        inside = reachable(self.graph, self.boundary)
        return frozenset(i for i in inside - outside if self.graph.kind[i] == Kind.ACCUMULATE)

    @property
    def leaves_lost(self) -> tuple[str, ...]:
        return tuple(self.leaf_name(index) for index in sorted(self.exclusive_leaves))

    def leaf_name(self, index: int) -> str:
        leaf = self.graph.leaves.get(index)
        return leaf.paths[0] if leaf and leaf.paths else "a leaf without a name"

    @cached_property
    def writes_between(self) -> tuple[Write, ...]:
        """In-place writes after the earlier call and before the later one."""
        return tuple(w for w in self.record.writes if self.earlier.n < w.after_calls <= self.later.n)

    @cached_property
    def steps_between(self) -> tuple[Write, ...]:
        """Writes between that modified leaves: an optimizer step, or the like by hand."""
        leaves = {path for leaf in self.graph.leaves.values() for path in leaf.paths}
        return tuple(w for w in self.writes_between if w.optimizer or leaves.intersection(w.paths))

    @cached_property
    def stepped_leaves(self) -> frozenset[str]:
        return frozenset(path for write in self.steps_between for path in write.paths)

    @property
    def same_cell_again(self) -> bool:
        """The same cell was run a second time, and holds both calls."""
        a, b = self.earlier.place, self.later.place
        return (
            a.run is not None
            and b.run is not None
            and a.run != b.run
            and a.cell_id is not None
            and a.cell_id == b.cell_id
        )

    @property
    def in_loop(self) -> bool:
        """Both calls were made by one line in different iterations of one loop."""
        a, b = self.earlier.place, self.later.place
        return (
            a.run == b.run
            and a.outer_line == b.outer_line
            and b.iteration is not None
            and a.iteration is not None
            and a.iteration != b.iteration
        )

    @property
    def called_by_callee(self) -> bool:
        """The earlier call was made inside a function that the later one's iteration had just called."""
        a, b = self.earlier.place, self.later.place
        inside = (a.cell, a.line) != (a.outer_cell, a.outer_line)
        return inside and a.run == b.run and a.iteration == b.iteration and a.outer_line != b.outer_line

    @cached_property
    def carrier_place(self) -> Place | None:
        """Where the first old node at the border was made."""
        places = [self.graph.place_of(i) for i in self.boundary]
        return next((p for p in places if p is not None and p.cell is not None), None)

    @property
    def carried_state(self) -> bool:
        """The line that made the carrier in an earlier iteration has made its successor in this one."""
        made = self.carrier_place
        if not self.in_loop or made is None:
            return False
        again = (self.graph.place_of(index) for index in self.new)
        return any(p is not None and (p.run, p.cell, p.line) == (made.run, made.cell, made.line) for p in again)

    @property
    def carrier(self) -> str:
        """The first carrier's path, or the node's name."""
        if self.later.carriers:
            return self.later.carriers[0]
        return self.graph.name_of(self.boundary[0]) if self.boundary else "the shared part"

    @cached_property
    def buffer(self) -> str | None:
        """The container of which several elements are carriers: ``memory`` for ``memory[0][0]``, ``memory[1][0]``."""
        roots = {path.split("[", 1)[0] for path in self.later.carriers if "[" in path}
        return roots.pop() if len(roots) == 1 and len(self.later.carriers) > 1 else None

    @property
    def root_name(self) -> str:
        """The later call's root as the user names it, or the expression it was called on."""
        return root_name(self.later)

    def run_of(self, place: Place | None) -> CellRun | None:
        return self.record.runs.get(place.run) if place is not None and place.run is not None else None

    def text_of(self, place: Place | None) -> str:
        """Source text of a place's line."""
        if place is None:
            return ""
        run = self.run_of(place)
        return place.source.strip() or (source.line_text(run.source, place.line) if run else "")


def root_name(call: BackwardCall) -> str:
    """What the call was made on, as the user would say it."""
    path = call.roots[0].path if call.roots else None
    if path:
        return path.rsplit(":", 1)[-1]
    text = call.place.source.strip()
    for marker in (".backward(", "autograd.grad("):
        if marker in text:
            before = text.split(marker, 1)[0].strip()
            return before.rsplit("=", 1)[-1].strip() if marker == ".backward(" else text
    return "the root"


def failed_meeting(record: Record, call: BackwardCall) -> Meeting | None:
    """The meeting behind a call that failed on freed saved tensors, if the earlier call and the graph are known."""
    earlier = call_at(record.calls, call.freed_by)
    if earlier is None or call.graph is None:
        return None
    return Meeting(record, call, earlier, call.graph)


def path_to(graph: Snapshot, roots: Iterable[TensorRef], goal: int) -> tuple[int, ...]:
    """Indices from a root to `goal` along a shortest way; empty when there is none."""
    came: dict[int, int] = {}
    queue = []
    for root in roots:
        if root.node >= 0 and root.node not in came:
            came[root.node] = -1
            queue.append(root.node)
    for index in queue:
        if index == goal:
            break
        for to in graph.next(index):
            if to not in came:
                came[to] = index
                queue.append(to)
    if goal not in came:
        return ()
    way = [goal]
    while came[way[-1]] >= 0:
        way.append(came[way[-1]])
    return tuple(reversed(way))
