"""What happened before a failing call, put together once for the findings and the fixes.

A second backward is a *meeting*: call `later` reached nodes that call `earlier` had executed. The
nodes the earlier call executed are the *old part*; what `later` brought along is the *new part*;
tensors at the border, the *carriers*, tie them together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import paths as detaching
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import short
from graphwidget.engine.what_if import reachable
from graphwidget.model import (
    BackwardCall,
    CellRun,
    Kind,
    Place,
    Record,
    SlotState,
    Snapshot,
    TensorRef,
    Write,
    in_order,
)

Tensor = tuple[int, int]  # index of the node that made it, which of the node's outputs it is


def call_at(calls: Iterable[BackwardCall], n: int | None) -> BackwardCall | None:
    return next((call for call in calls if call.n == n), None)


_ADDING = {f"{name}Backward0" for name in ("Add", "Sub", "Neg", "Sum", "Mean", "Stack", "ToCopy")}


def _scales(graph: Snapshot, index: int) -> bool:
    """Whether a node multiplies or divides by what has no graph."""
    return graph.name_of(index) in ("MulBackward0", "DivBackward0") and len(graph.next(index)) == 1


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
        n = self.earlier.n
        slots = [slot for slot, by in enumerate(graph.slot_freed_by) if by == n]
        freed = {graph.node_with(slot) for slot in slots}
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

    @property
    def runs_again(self) -> bool:
        """Whether the later call began where the earlier one did, as far as that is known."""
        before = self.earlier.graph
        begun = (
            {before.uid[root.node] for root in self.earlier.roots if root.node >= 0} if before is not None else set()
        )
        return not begun or any(self.graph.uid[index] in begun for index in self.root_indices)

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

    @cached_property
    def starved(self) -> frozenset[int]:
        """Of the exclusive leaves those that the program trains."""
        stepped = {path for w in self.record.writes if w.optimizer or ".grad" in w.by for path in w.paths}
        return frozenset(i for i in self.exclusive_leaves if not stepped or self._is_trained(i, stepped))

    def _is_trained(self, index: int, stepped: Collection[str]) -> bool:
        """Whether a leaf is stepped, or may be: a parameter, or one that an optimizer has. A plain tensor that requires
        grad, and that no step changes while it changes others, is not."""
        leaf = self.graph.leaves.get(index)
        if leaf is None or not leaf.paths:
            return True
        kinds = {self.record.holders.get(path) for path in leaf.paths}
        return "leaf" not in kinds or not {"param_groups", *stepped}.isdisjoint(
            word for path in leaf.paths for word in (path, *re.findall(r"param_groups", path))
        )

    @cached_property
    def only_added(self) -> bool:
        """Whether the carrier is a term of the root, made once: added, perhaps with a factor, and used in no other way.

        Cut off, it has no effect. A running total is none: what it adds up has had its gradient.
        """
        if self.same_root or self.carried_state or self.made_on_the_way:
            return False
        graph = self.graph
        other = (i for i in self.new if graph.name_of(i) not in _ADDING and not _scales(graph, i))
        return not reachable(graph, (to for i in other for to in graph.next(i))).intersection(self.boundary)

    @cached_property
    def needed(self) -> frozenset[int]:
        """Reached nodes with freed or stale slots, or that lead to such: those that a fresh graph must replace."""
        graph, old = self.graph, self.old

        def gone(index: int, slot: int) -> bool:
            freed = index in old and graph.slot_freed_by[slot] >= 0
            return freed or graph.slot_state[slot] == SlotState.STALE

        wanted = [i for i in self.reached if any(gone(i, s) for s in graph.slots_of(i))]
        return frozenset(self.leading_to(wanted or self.boundary))

    def leading_to(self, goals: Iterable[int]) -> set[int]:
        """Reached nodes from which a gradient gets to one of these; they are included."""
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

    def leaf_names(self, indices: Iterable[int]) -> tuple[str, ...]:
        """The leaves' names, each once."""
        return tuple(dict.fromkeys(map(self.leaf_name, sorted(indices))))

    def leaf_name(self, index: int) -> str:
        leaf = self.graph.leaves.get(index)
        return lasting_name(self.record, leaf.paths) if leaf and leaf.paths else "a leaf without a name"

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
    def same_call(self) -> bool:
        """Whether the later call would do what the earlier one has done: `backward` of the same tensor."""
        a, b = self.earlier, self.later
        roots = [
            [graph.uid[r.node] for r in c.roots if r.node >= 0] for c, graph in ((a, a.graph), (b, self.graph)) if graph
        ]
        return a.api == b.api == "backward" and a.inputs is b.inputs is None and roots[0] == roots[-1]

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
        """Both calls were made by one line while one line of the cell ran: a loop, there or in a function."""
        a, b = self.earlier.place, self.later.place
        return (
            a.run == b.run
            and a.line is not None
            and (a.cell, a.line) == (b.cell, b.line)
            and not self.one_comprehension
            and not self._side_by_side
        )

    @property
    def _side_by_side(self) -> bool:
        """Two calls written on one line: ``a.backward(); b.backward()``."""
        a, b = self.earlier.place, self.later.place
        calls = source.backward_calls(self.text_of_cell(b.cell), b.line) if b.line is not None else 0
        return a.iteration == b.iteration and calls > 1

    @property
    def loops_in_function(self) -> bool:
        """Whether the loop around both calls stands in a function, not in the cell that called it."""
        a, b, run = self.earlier.place, self.later.place, self.run_of(self.later.place)
        if not self.in_loop or b.line is None or run is None or b.outer_line is None:
            return False
        if source.loop_at(run.source, b.outer_line) is None:
            return True
        inner = source.loop_at(self.text_of_cell(b.cell), b.line) is not None
        return inner and (a.iteration or 0) < (b.iteration or 0) and (b.cell, b.line) != (b.outer_cell, b.outer_line)

    @cached_property
    def one_comprehension(self) -> bool:
        """One statement made both calls: ``[l.backward() for l in losses]``."""
        run = self.run_of(self.later.place)
        line = self.later.place.line
        if run is None or line is None or self.later.place.cell != run.cell:
            return False
        found = source.statements_at(run.source, line)
        return bool(found) and source.is_comprehension(found[-1])

    @property
    def repeated(self) -> bool:
        """One line made both calls: in a loop, or in a cell that was run again."""
        a, b = self.earlier.place, self.later.place
        return self.in_loop or (self.same_cell_again and a.line == b.line)

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
    def made_on_the_way(self) -> bool:
        """Whether the carrier was made in a pass of the same loop or cell as the calls, not before it."""
        made, later = self.carrier_place, self.later.place
        if made is None or not self.repeated:
            return False
        if made.run != later.run:
            return made.cell_id is not None and made.cell_id == later.cell_id
        run, line = self.run_of(later), later.outer_line
        loop = source.loop_at(run.source, line) if run is not None and line is not None else None
        if loop is None:  # it is in a function: what was made before it began has no pass
            before = made.iteration is None and later.iteration is not None
            return made.outer_line == later.outer_line and not before
        return loop.lineno <= (made.outer_line or 0) <= (loop.end_lineno or 0)

    @property
    def carried_state(self) -> bool:
        """The line that made the carrier in an earlier pass has made its successor, by the same operation, in this one.

        Another node of that line is no successor: the line uses something that it made only once (a cache).
        """
        made, graph = self.carrier_place, self.graph
        if made is None:
            return False
        names = {graph.name_of(index) for index in self.boundary}
        places = [graph.place_of(index) for index in self.new if graph.name_of(index) in names]
        again = [p for p in places if p is not None and source_line(p) == source_line(made)]
        ran_again = any(p.run != made.run and p.cell_id is not None and p.cell_id == made.cell_id for p in again)
        return ran_again or (self.made_on_the_way and bool(again))

    @property
    def one_cell_builds_the_rest(self) -> bool:
        """One run of a cell made all that has to be fresh, but for what the later call's own run made."""
        places = [self.graph.place_of(i) for i in self.needed if self.graph.seq[i] >= 0]
        runs = {p.run if p is not None else None for p in places} - {self.later.place.run}
        return self.carrier_place is not None and runs == {self.carrier_place.run}

    @cached_property
    def carrier_is_assigned(self) -> bool:
        """Whether the line that made the carrier made nothing after it: what it assigns then is the carrier."""
        before, made = self.earlier.graph or self.graph, self.carrier_place
        uids = {self.graph.uid[i] for i in self.boundary}
        same = [i for i in range(len(before)) if made is not None and before.place_of(i) == made]
        return not same or before.uid[max(same, key=before.seq.__getitem__)] in uids

    @cached_property
    def names_before(self) -> tuple[str, ...]:
        """Names, at the earlier call, of tensors that it did not reach and that the later one builds on.

        They hang on the old part: ``h`` was updated once more after the loss had been made.
        """
        before = self.earlier.graph
        unrun = {i for i in self.new if 0 <= self.graph.seq[i] < self.earlier.newest_seq}
        if before is None or not unrun:
            return ()
        users = (i for i in self.new - unrun if unrun.intersection(self.graph.next(i)))
        border = {to for i in users for to in self.graph.next(i) if to in unrun}
        uids = {self.graph.uid[i] for i in border if reachable(self.graph, [i]) & self.old}
        return tuple(o.path for o in before.owners if o.kind != "out" and before.uid[o.node] in uids)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What carried the old part over: as the call saw it, by its name now, by its name when it was freed."""
        if self.later.carriers:
            return self.later.carriers
        now = {o.path for o in self.graph.owners if o.node in self.boundary and o.kind != "out"}
        if now:
            return in_order(now)
        before = self.earlier.graph
        uids = {self.graph.uid[i] for i in self.boundary}
        then = [o.path for o in before.owners if before.uid[o.node] in uids and o.kind != "out"] if before else []
        return in_order(then)

    @cached_property
    def border_names(self) -> tuple[str, ...]:
        """The carriers' names; where nobody names one, what the line that made it assigns."""
        made = self.carrier_place
        if self.names or not self.carrier_is_assigned or made is None or not made.line:
            return self.names
        found = source.statements_at(self.text_of_cell(made.cell), made.line)
        return tuple(source.targets(found[-1])) if found else ()

    def lasting(self, paths: tuple[str, ...], anew: set[str]) -> tuple[str, ...]:
        """The paths whose variables are not assigned `anew`; if there is none, others of the same tensors."""
        uids = {self.graph.uid[i] for i in self.boundary}
        known = [graph for graph in (self.graph, self.earlier.graph) if graph is not None]
        others = tuple(o.path for g in known for o in g.owners if g.uid[o.node] in uids and o.kind != "out")
        put = tuple(path for run in self.record.runs.values() for path in containers.taken_in(run.source, paths))
        kept = ([path for path in given if detaching.root_of(path) not in anew] for given in (paths, others, put))
        return tuple(next(filter(None, kept), ()))

    @cached_property
    def buffer(self) -> str | None:
        """The container of which several elements are carriers: ``memory`` for ``memory[0][0]``, ``memory[1][0]``."""
        roots = [path.split("[", 1)[0] for path in self.names if "[" in path]
        return roots[0] if len(roots) > 1 and len(set(roots)) == 1 else None

    @property
    def root_name(self) -> str:
        """The later call's root as the user names it, or the expression it was called on."""
        return root_name(self.later)

    @property
    def brings_leaves(self) -> bool:
        """Whether the later call's own part leads to leaves: it is not only another view of the old part."""
        return any(self.graph.kind[to] == Kind.ACCUMULATE for i in self.new for to in self.graph.next(i))

    @cached_property
    def grad_used(self) -> bool:
        """The later root was made from a gradient that the earlier call returned without a graph."""
        earlier, later = self.earlier, self.later
        run = self.run_of(earlier.place)
        if earlier.api != "autograd.grad" or earlier.create_graph or run is None or earlier.place.line is None:
            return False
        if earlier.place.cell != run.cell or earlier.place.run != later.place.run:
            return False
        statements = source.statements_at(run.source, earlier.place.line)
        got = set(source.targets(statements[-1])) if statements else set()
        last = later.place.outer_line or 0
        used = {n for s in source.between(run.source, earlier.place.line, last) for n in source.names_in(s)}
        return bool(got & used)

    def uses_by(self, call: BackwardCall) -> list[Place]:
        """Where nodes of a call's own part were made that lead into the old part."""
        graph = call.graph
        if graph is None:
            return []
        border = {graph.index_of.get(self.graph.uid[i]) for i in self.boundary}
        inside = reachable(graph, (root.node for root in call.roots))
        skipped = (
            self.old if call is self.later else frozenset(i for i in inside if graph.uid[i] in self._uids_behind_border)
        )
        users = [i for i in sorted(inside) if i not in skipped and border.intersection(graph.next(i))]
        places = [place for i in users if (place := graph.place_of(i)) is not None and place.cell is not None]
        return list(dict.fromkeys(places))

    @cached_property
    def _uids_behind_border(self) -> frozenset[int]:
        return frozenset(self.graph.uid[i] for i in reachable(self.graph, self.boundary))

    def text_of_cell(self, cell: int | None) -> str:
        """Source of the latest run of `In[cell]`."""
        runs = [run for run in self.record.runs.values() if cell is not None and run.cell == cell]
        return runs[-1].source if runs else ""

    def run_of(self, place: Place | None) -> CellRun | None:
        return self.record.runs.get(place.run) if place is not None and place.run is not None else None

    def text_of(self, place: Place | None) -> str:
        """Source text of a place's line."""
        if place is None:
            return ""
        run = self.run_of(place)
        return place.source.strip() or (source.line_text(run.source, place.line) if run else "")


def spoken(path: str) -> str:
    """A path as a sentence can say it: ``h`` for ``step:h``, ``gen.gi_frame[h]``, ``f.__closure__[h]``."""
    hidden = re.fullmatch(r".*\.(?:__closure__|gi_frame)\[(\w+)\](.*)", path)
    return hidden[1] + hidden[2] if hidden else detaching.local(path).split(" -> ", 1)[0]


def lasting_name(record: Record, paths: tuple[str, ...]) -> str:
    """Of several names the one to say: no variable of a loop, and a name rather than a number."""
    passing = {name for run in record.runs.values() for name in source.loop_names(run.source)}
    best = min(paths, key=lambda path: (is_notebook_s(path), detaching.root_of(path) in passing, path.endswith("]")))
    return spoken(best)


def source_line(place: Place) -> tuple[object, int | None]:
    """The line of the program, the same in every run of its cell."""
    return (place.cell_id if place.cell_id is not None else place.cell, place.line)


def passing(record: Record, place: Place) -> str:
    """``iteration 3``; where there are loops in loops, of which: ``iteration 3 of `for t```."""
    run = record.runs.get(place.run) if place.run is not None else None
    if run is None:
        return f"iteration {place.iteration}"
    loops = source.loops_around(run.source, place.outer_line or 0)
    counted = loops[-1:]  # the innermost loop of the cell; or, in a function that no loop has called, of that
    if (place.cell, place.line) != (place.outer_cell, place.outer_line):
        text = next((one.source for one in record.runs.values() if one.cell == place.cell), "")
        inside = source.loops_around(text, place.line or 0)
        loops, counted = [*loops, *inside], counted or inside[-1:]
    several = len(loops) > 1 or any(
        isinstance(s, source.LOOPS) for loop in loops for s in source.own_statements(loop.body)
    )
    named = f" of {short(source.head(counted[0]))}" if several and counted else ""
    return f"iteration {place.iteration}{named}"


def own_path(ref: TensorRef | None) -> str | None:
    """The shortest path that the user wrote, rather than IPython's `_` and `Out`."""
    paths = ref.paths if ref is not None else ()
    return next((path for path in paths if not is_notebook_s(path)), None)


def is_notebook_s(path: str) -> bool:
    """Whether IPython gave the name, as `_`, `___`, `_3` and `Out`, or it is a part of such."""
    return re.match(r"_{1,3}\d*(?!\w)|Out\[", path) is not None


def root_name(call: BackwardCall) -> str:
    """What the call was made on, as the user would say it."""
    path = own_path(call.roots[0]) if call.roots else None
    if path:
        return path.rsplit(":", 1)[-1]
    text = call.place.source.strip()
    found = source.receivers(text)
    if found and found[0] not in ("torch.autograd", "autograd"):
        return found[0] if len(set(found)) == 1 else "the root"
    outputs = source.asked(text, "outputs") if call.api == "autograd.grad" else []
    if len(outputs) == 1:
        return outputs[0]
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


def way(graph: Snapshot, call: BackwardCall) -> tuple[Tensor, ...]:
    """A shortest way from a call's roots to the node at which it failed; empty where that is unknown."""
    index = graph.index_of.get(call.failed_uid) if call.failed_uid is not None else None
    return path_to(graph, call.roots, index) if index is not None else ()


def path_to(graph: Snapshot, roots: Iterable[TensorRef], goal: int) -> tuple[Tensor, ...]:
    """The tensors along a shortest way from a root to the node `goal` (index); empty when there is none."""
    came: dict[int, Tensor | None] = {}
    queue: list[Tensor] = []
    for root in roots:
        if root.node >= 0 and root.node not in came:
            came[root.node] = None
            queue.append((root.node, root.output_nr))
    for tensor in queue:
        index = tensor[0]
        if index == goal:
            found = [tensor]
            while (before := came[found[-1][0]]) is not None:
                found.append(before)
            return tuple(reversed(found))
        for edge in range(graph.edge_start[index], graph.edge_start[index + 1]):
            to = graph.edge_to[edge]
            if to not in came:
                came[to] = tensor
                queue.append((to, graph.edge_nr[edge]))
    return ()
