"""Which part of a graph two calls share: a backward that reached nodes which an earlier one had executed.

The nodes that the earlier call executed are the *old part*; other nodes that the later call reaches are the *new
part*; the tensors at the border between them are the *carriers*. All facts here are exact: they come from the graph
and the recorded calls. Facts that need the text of the program are in `setting`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from graphwidget.diagnosis.reuse.graph_paths import path_to_failure
from graphwidget.diagnosis.reuse.passes.before import in_earlier_pass
from graphwidget.diagnosis.source.pytorch.optimizers import is_below, optimized_paths
from graphwidget.diagnosis.wording import handed_to_call
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, Kind, Place, Record, SlotState, Snapshot, Write, in_order

__all__ = ["Reuse", "call_at", "reuse_of"]


def call_at(calls: Iterable[BackwardCall], n: int | None) -> BackwardCall | None:
    """The call with the number `n`; None: it is not remembered."""
    return next((call for call in calls if call.n == n), None)


def reuse_of(record: Record, call: BackwardCall) -> Reuse | None:
    """The reuse behind a call that failed on freed saved tensors; None if the freeing call or the graph is unknown."""
    earlier = call_at(record.calls, call.freed_by)
    if earlier is None or call.graph is None:
        return None
    return Reuse(record, call, earlier, call.graph)


@dataclass(frozen=True)
class Reuse:
    """A call (`later`) and the `earlier` one whose nodes it reached again. `graph` is the graph just before `later`."""

    record: Record
    later: BackwardCall
    earlier: BackwardCall
    graph: Snapshot

    # the two parts

    @cached_property
    def root_indices(self) -> tuple[int, ...]:
        """Indices of the nodes at which the later call begins."""
        return tuple(root.node for root in self.later.roots if root.node >= 0)

    @cached_property
    def reached(self) -> frozenset[int]:
        """Indices of all nodes that the later call leads to."""
        return frozenset(reachable(self.graph, self.root_indices))

    @cached_property
    def old(self) -> frozenset[int]:
        """Indices of the nodes that the earlier call executed, without leaves."""
        graph = self.graph
        slots = [slot for slot, by in enumerate(graph.slot_freed_by) if by == self.earlier.n]
        freed = {graph.node_with(slot) for slot in slots}
        ran = {index for uid in set(self.earlier.executed) if (index := graph.index_of.get(uid)) is not None}
        return frozenset(index for index in freed | ran if graph.kind[index] != Kind.ACCUMULATE)

    @cached_property
    def new(self) -> frozenset[int]:
        """Indices of the nodes that the later call reaches and that are neither old nor leaves."""
        return frozenset(i for i in self.reached - self.old if self.graph.kind[i] != Kind.ACCUMULATE)

    @cached_property
    def boundary(self) -> tuple[int, ...]:
        """Old nodes into which the new part, or the root itself, leads."""
        edges = {to for index in self.new for to in self.graph.next(index) if to in self.old}
        return tuple(sorted(edges | {i for i in self.root_indices if i in self.old}))

    @property
    def same_root(self) -> bool:
        """Whether the later call began inside the old part: the same tensor was run again."""
        return any(index in self.old for index in self.root_indices)

    @property
    def runs_again(self) -> bool:
        """Whether the later call began where the earlier one did, as far as that is known."""
        before = self.earlier.graph
        if before is None:
            return True
        begun = {before.uid[root.node] for root in self.earlier.roots if root.node >= 0}
        return not begun or any(self.graph.uid[index] in begun for index in self.root_indices)

    @property
    def same_call(self) -> bool:
        """Whether the later call repeats the earlier one: `backward` of the same tensor, without `inputs`.

        Or of a multiple of it, which the line of each call makes: ``(loss / 2).backward()``.
        """
        a, b = self.earlier, self.later
        if not (a.api == b.api == "backward" and a.inputs is b.inputs is None):
            return False
        if a.graph is None:
            return True
        return [*_run_on(a, a.graph)] == [*_run_on(b, self.graph)]

    @cached_property
    def built_after(self) -> bool:
        """Whether anything of the new part was made after the earlier call began.

        What the line of the later call made of its loss does not count: ``accelerator.backward(loss)`` scales it.
        """
        _, scaled = handed_to_call(self.later)
        uids = {self.graph.uid[i] for i in scaled}
        made = (i for i in self.new if self.graph.seq[i] >= self.earlier.newest_seq)
        return any(self.graph.uid[i] not in uids for i in made)

    @cached_property
    def needed(self) -> frozenset[int]:
        """Reached nodes with freed or stale slots, and nodes that lead to these: a fresh graph must replace them."""
        graph, old = self.graph, self.old

        def lost(index: int, slot: int) -> bool:
            freed = index in old and graph.slot_freed_by[slot] >= 0
            return freed or graph.slot_state[slot] == SlotState.STALE

        wanted = [i for i in self.reached if any(lost(i, slot) for slot in graph.slots_of(i))]
        return frozenset(self.leading_to(wanted or self.boundary))

    def leading_to(self, goals: Iterable[int]) -> set[int]:
        """Reached nodes from which a gradient gets to one of `goals`, which are included."""
        start, to = self.graph.edge_start, self.graph.edge_to
        users: dict[int, list[int]] = defaultdict(list)
        for index in self.reached:
            for edge in range(start[index], start[index + 1]):
                users[to[edge]].append(index)
        found = set(goals)
        stack = list(found)
        while stack:
            for user in users.get(stack.pop(), ()):
                if user not in found:
                    found.add(user)
                    stack.append(user)
        return found

    @cached_property
    def made_of_the_old(self) -> frozenset[int]:
        """New nodes that lead to leaves only through the old part: a gradient gets nowhere else from them."""
        known = self.old | self.new
        beside = self.leading_to(i for i in self.new if any(to not in known for to in self.graph.next(i)))
        return frozenset((self.leading_to(self.boundary) & self.new) - beside)

    # leaves

    @property
    def brings_leaves(self) -> bool:
        """Whether the new part itself leads to leaves, and does not only build on the old part."""
        return any(self.graph.kind[to] == Kind.ACCUMULATE for i in self.new for to in self.graph.next(i))

    @cached_property
    def exclusive_leaves(self) -> frozenset[int]:
        """Leaves that get their gradient only through the old part: detaching would cut them off."""
        outside = {to for index in self.new for to in self.graph.next(index) if to not in self.old}
        inside = reachable(self.graph, self.boundary)
        return frozenset(i for i in inside - outside if self.graph.kind[i] == Kind.ACCUMULATE)

    @cached_property
    def starved(self) -> frozenset[int]:
        """Those exclusive leaves that the program trains."""
        steps = [w for w in self.record.writes if w.optimizer or ".grad" in w.by]
        if not any(step.paths for step in steps):
            return self.exclusive_leaves
        given = optimized_paths(list(self.record.runs.values()))
        return frozenset(i for i in self.exclusive_leaves if self._is_trained(i, steps, given))

    def _is_trained(self, index: int, steps: list[Write], given: set[str]) -> bool:
        """Whether a leaf is stepped, or may be.

        It is not if steps change others, and no optimizer holds it or is made of it, also by a line that has not run.
        `given`: the paths of what optimizers are made of.
        """
        leaf = self.graph.leaves.get(index)
        if leaf is None or not leaf.paths or any(step.is_to(leaf) for step in steps):
            return True
        return any("param_groups" in path or any(is_below(path, one) for one in given) for path in leaf.paths)

    # what was modified between the calls

    @cached_property
    def writes_between(self) -> tuple[Write, ...]:
        """In-place writes after the earlier call and before the later one."""
        return tuple(w for w in self.record.writes if self.earlier.n < w.after_calls <= self.later.n)

    @cached_property
    def steps_between(self) -> tuple[Write, ...]:
        """Writes between the calls that modified leaves: an optimizer step, or the same by hand."""
        leaves = {path for leaf in self.graph.leaves.values() for path in leaf.paths}
        return tuple(w for w in self.writes_between if w.optimizer or leaves.intersection(w.paths))

    @property
    def steps_modified_the_old_part(self) -> bool:
        """Whether a step between the calls modified a leaf that only the old part reaches."""
        leaves = map(self.graph.leaves.get, self.exclusive_leaves)
        behind = {path for leaf in leaves if leaf is not None for path in leaf.paths}
        return any(behind.intersection(write.paths) for write in self.steps_between)

    # carriers

    @cached_property
    def carrier_place(self) -> Place | None:
        """Where the old node at the border was made: on the path to the failure, else the first one with a place.

        Where the earlier pass left something made of the old part, and nothing in sight has it, the node of that.
        """
        border = self._border
        on_the_way = [index for index, _ in path_to_failure(self.graph, self.later) if index in border]
        places = [self.graph.place_of(index) for index in (*on_the_way, *border)]
        return next((p for p in places if p is not None and p.cell is not None), None)

    @cached_property
    def carrier_is_assigned(self) -> bool:
        """Whether the line that made the carrier made no node after it: then the line assigns the carrier."""
        before, made = self.earlier.graph or self.graph, self.carrier_place
        uids = {self.graph.uid[i] for i in self._border}
        same = [i for i in range(len(before)) if made is not None and before.place_of(i) == made]
        return not same or before.uid[max(same, key=before.seq.__getitem__)] in uids

    @cached_property
    def carrier_paths(self) -> tuple[str, ...]:
        """Paths of the carriers: as the later call saw them, else those of now, else those when they were freed."""
        if self.later.carriers:
            return self.later.carriers
        now = {o.path for o in self.graph.owners if o.node in self.boundary and o.kind != "out"}
        if now:
            return in_order(now)
        before = self.earlier.graph
        if before is None:
            return ()
        uids = {self.graph.uid[i] for i in self.boundary}
        return in_order([o.path for o in before.owners if before.uid[o.node] in uids and o.kind != "out"])

    @cached_property
    def _border(self) -> tuple[int, ...]:
        """The nodes at which the later pass begins to build on an earlier one, without a name if there are such."""
        return tuple(sorted(self.unrun)) if self.unrun and not self.unrun_paths else self.boundary

    @cached_property
    def unrun(self) -> frozenset[int]:
        """Nodes that the earlier call did not reach, made before the later pass, that lead this into the old part.

        ``h`` was updated once more after the loss had been made, or after the call.
        """
        unrun = {i for i in self.new if self.is_from_before(i)}
        if self.earlier.graph is None or not unrun:
            return frozenset()
        border = {to for i in self.new - unrun for to in self.graph.next(i) if to in unrun}
        return frozenset(i for i in border if reachable(self.graph, [i]) & self.old)

    def is_from_before(self, index: int) -> bool:
        """Whether a node was made before the pass of the later call: up to the earlier call, or in a pass before.

        Where the passes are not known, those that are older than the earlier call.
        """
        if 0 <= self.graph.seq[index] < self.earlier.newest_seq:
            return True
        place = self.graph.place_of(index)
        return place is not None and self._is_earlier(place)

    @cached_property
    def _is_earlier(self) -> Callable[[Place], bool]:
        return in_earlier_pass(self.record, self.earlier.place, self.later.place)

    @property
    def handed_on(self) -> frozenset[int]:
        """Those of them that were made after the earlier call: ``self.mem = h.mean()``."""
        return frozenset(i for i in self.unrun if self.graph.seq[i] >= self.earlier.newest_seq)

    @cached_property
    def unrun_paths(self) -> tuple[str, ...]:
        """Names, then or now, of tensors that the earlier call did not reach and on which the later one builds."""
        before = self.earlier.graph
        uids = {self.graph.uid[i] for i in self.unrun}
        owners = before.owners if before is not None else ()
        then = [o.path for o in owners if o.kind != "out" and before is not None and before.uid[o.node] in uids]
        now = [o.path for o in self.graph.owners if o.kind != "out" and o.node in self.unrun]
        return tuple(dict.fromkeys((*then, *now)))

    def uses_by(self, call: BackwardCall) -> list[Place]:
        """Places at which nodes of a call's own part were made that lead into the old part."""
        graph = call.graph
        if graph is None:
            return []
        border = {graph.index_of.get(self.graph.uid[i]) for i in self.boundary}
        inside = reachable(graph, (root.node for root in call.roots))
        if call is self.later:
            skipped = self.old
        else:
            skipped = frozenset(i for i in inside if graph.uid[i] in self._uids_behind_border)
        users = [i for i in sorted(inside) if i not in skipped and border.intersection(graph.next(i))]
        places = [place for i in users if (place := graph.place_of(i)) is not None and place.cell is not None]
        return list(dict.fromkeys(places))

    @cached_property
    def _uids_behind_border(self) -> frozenset[int]:
        return frozenset(self.graph.uid[i] for i in reachable(self.graph, self.boundary))


def _run_on(call: BackwardCall, graph: Snapshot) -> Iterator[int]:
    """The uids of the nodes of the tensors that the line of a call was given."""
    for index in (root.node for root in call.roots if root.node >= 0):
        while scales(graph, index) and graph.place_of(index) == call.place:
            index = graph.next(index)[0]
        yield graph.uid[index]


def scales(graph: Snapshot, index: int) -> bool:
    """Whether a node multiplies or divides by a value without a graph."""
    return graph.name_of(index) in ("MulBackward0", "DivBackward0") and len(graph.next(index)) == 1
