"""Where in the program a reuse happened: the facts about it that need the text of the cells, and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from graphwidget.diagnosis.reuse.reuse import Reuse, scales
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.dataflow.flow import Flow
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.diagnosis.wording import at, lasting_name, root_name, source_line
from graphwidget.model import CellRun, Kind, Place, Snapshot

__all__ = ["Setting"]

_ADDING = {f"{name}Backward0" for name in ("Add", "Sub", "Neg", "Sum", "Mean", "Stack", "ToCopy")}
_WEIGHING = {f"{name}Backward0" for name in ("Mul", "Div", "Sub", "MseLoss", "SmoothL1Loss", "HuberLoss")}


def is_added(graph: Snapshot, index: int) -> bool:
    """Whether a node only adds up what it is given, or multiplies it by a value without a graph."""
    return graph.name_of(index) in _ADDING or scales(graph, index)


@dataclass(frozen=True)
class Setting:
    """The program around the two calls of a reuse."""

    reuse: Reuse

    # texts

    def text_of_cell(self, cell: int | None) -> str:
        """Source of the latest run of `In[cell]`."""
        return self._cells.text(cell)

    @cached_property
    def _cells(self) -> Cells:
        return Cells.of(self.reuse.record)

    def run_of(self, place: Place | None) -> CellRun | None:
        """The run of the cell that a place belongs to."""
        return self.reuse.record.runs.get(place.run) if place is not None and place.run is not None else None

    def text_of(self, place: Place | None) -> str:
        """Source text of a place's line."""
        if place is None:
            return ""
        run = self.run_of(place)
        return place.source.strip() or (source.line_text(run.source, place.line) if run else "")

    def function_of(self, spot: Spot) -> tuple[int, int]:
        """The function that a line is in: its cell, and the line of its head; 0: none."""
        found = source.function_at(self.text_of_cell(spot[0]), spot[1])
        return spot[0], found[1].lineno if found is not None else 0

    # where the two calls stand

    @property
    def same_cell_again(self) -> bool:
        """Whether the same cell was run a second time, and each run made one of the calls."""
        a, b = self.reuse.earlier.place, self.reuse.later.place
        if a.run is None or b.run is None or a.run == b.run:
            return False
        return a.cell_id is not None and a.cell_id == b.cell_id

    @property
    def in_loop(self) -> bool:
        """Whether one line made both calls during one run of a cell: in a loop, there or in a function."""
        a, b = self.reuse.earlier.place, self.reuse.later.place
        same_line = a.run == b.run and a.line is not None and (a.cell, a.line) == (b.cell, b.line)
        return same_line and not self.one_comprehension and not self._side_by_side and not self._by_helper

    @cached_property
    def _by_helper(self) -> bool:
        """Whether two lines of one pass hand their losses to the function that makes both calls: ``update(d_loss)``.

        A function that computes the loss itself is as good as the body of a loop.
        """
        a, b = self.reuse.earlier.place, self.reuse.later.place
        callers = [*map(at, b.stack)]
        if a.iteration != b.iteration or [*map(at, a.stack)] == callers:
            return False
        graph = self.reuse.graph
        for index in self.reuse.new:
            made = graph.place_of(index)
            frames = (*made.stack, made) if made is not None else ()
            if len(frames) <= len(callers) or [*map(at, frames[: len(callers)])] != callers:
                continue
            own = frames[len(callers)]
            scaled = made == b and all(graph.kind[to] != Kind.ACCUMULATE for to in graph.next(index))
            if (own.cell, own.function) == (b.cell, b.function) and not scaled:
                return False
        return True

    @property
    def _side_by_side(self) -> bool:
        """Whether the two calls are written on one line: ``a.backward(); b.backward()``."""
        a, b = self.reuse.earlier.place, self.reuse.later.place
        calls = source.backward_calls(self.text_of_cell(b.cell), b.line) if b.line is not None else 0
        return a.iteration == b.iteration and calls > 1

    @property
    def loops_in_function(self) -> bool:
        """Whether the loop around both calls stands in a function, not in the cell that called it."""
        a, b = self.reuse.earlier.place, self.reuse.later.place
        run = self.run_of(b)
        if not self.in_loop or b.line is None or run is None or b.outer_line is None:
            return False
        if source.loop_at(run.source, b.outer_line) is None:
            return True
        inner = source.loop_at(self.text_of_cell(b.cell), b.line) is not None
        return inner and (a.iteration or 0) < (b.iteration or 0) and (b.cell, b.line) != (b.outer_cell, b.outer_line)

    @cached_property
    def one_comprehension(self) -> bool:
        """Whether one statement made both calls: ``[l.backward() for l in losses]``."""
        place = self.reuse.later.place
        run = self.run_of(place)
        if run is None or place.line is None or place.cell != run.cell:
            return False
        found = source.statements_at(run.source, place.line)
        return bool(found) and source.runs_in_comprehension(found[-1])

    @property
    def repeated(self) -> bool:
        """Whether one line made both calls: in a loop, or in a cell that was run again."""
        a, b = self.reuse.earlier.place, self.reuse.later.place
        return self.in_loop or (self.same_cell_again and a.line == b.line)

    @cached_property
    def called_by_callee(self) -> bool:
        """Whether a called function made the earlier call, and another line of the same pass the later one.

        Both may do it by one more function, that of a wrapper: the earlier call is made deeper inside.
        """
        a, b = self.reuse.earlier.place, self.reuse.later.place
        if a.iteration != b.iteration:
            return False
        inside = (a.cell, a.line) != (a.outer_cell, a.outer_line)
        if inside and a.run == b.run and a.outer_line != b.outer_line:
            return True
        return len(a.stack) > len(b.stack) and self.parting[0] is not None

    @cached_property
    def parting(self) -> tuple[Place | None, tuple[Place, ...]]:
        """The line of the later call where its way parts from that of the earlier one, and its way from there on.

        The lines of one function, of which one leads to the earlier call and one to the later. None: not known.
        """
        ways = [(*call.place.stack, call.place) for call in (self.reuse.earlier, self.reuse.later)]
        for depth, (one, other) in enumerate(zip(*ways, strict=False)):
            if at(one) != at(other):
                same = (one.cell, one.function) == (other.cell, other.function) and at(other) is not None
                return (other, ways[1][depth + 1 :]) if same else (None, ())
        return None, ()

    # where the carrier was made, and how it is used

    @property
    def made_in_same_pass(self) -> bool:
        """Whether the carrier was made in a pass of the same loop or cell as the calls, not before it."""
        made, later = self.reuse.carrier_place, self.reuse.later.place
        if made is None or not self.repeated:
            return False
        if made.run != later.run:
            return made.cell_id is not None and made.cell_id == later.cell_id
        run, line = self.run_of(later), later.outer_line
        loop = source.loop_at(run.source, line) if run is not None and line is not None else None
        if loop is None:  # it is in a function: nodes made before the function was called belong to no pass
            before = made.iteration is None and later.iteration is not None
            return made.outer_line == later.outer_line and not before
        return loop.lineno <= (made.outer_line or 0) <= (loop.end_lineno or 0)

    @cached_property
    def made_before_the_inner_loop(self) -> bool:
        """Whether a loop in a function makes both calls, in one pass of the cell's loop, and the carrier is older."""
        a, b, made = self.reuse.earlier.place, self.reuse.later.place, self.reuse.carrier_place
        passes = [(one.run, one.outer_line, one.iteration, one.inner_run) for one in (a, b)]
        if made is None or a.iteration is None or passes[0] != passes[1]:
            return False
        for frame in (b, *b.stack[:0:-1]):
            loop = source.loop_at(self.text_of_cell(frame.cell), frame.line or 0)
            if loop is not None and (frame.cell, frame.line) != (b.outer_cell, b.outer_line):
                lines = [one.line or 0 for one in (*made.stack, made) if one.cell == frame.cell]
                return not any(loop.lineno <= one <= (loop.end_lineno or 0) for one in lines)
        return False

    @cached_property
    def carried_state(self) -> bool:
        """Whether the line that made the carrier in one pass made its successor in the next, by the same operations.

        Another node of that line is no successor: the line uses something that it made only once (a cache).
        """
        graph, reuse = self.reuse.graph, self.reuse
        handed = reuse.unrun or reuse.boundary
        made = {source_line(p) for i in handed if (p := graph.place_of(i)) is not None} if reuse.unrun else set()
        if not made and reuse.carrier_place is not None:
            made = {source_line(reuse.carrier_place)}
        # The next value of a state is no part of this call's graph, if the loss is made of the value before it.
        paths = set(reuse.unrun_paths)
        now = {o.node for o in graph.owners if o.path in paths and graph.seq[o.node] >= reuse.earlier.newest_seq}
        again = [
            place
            for i in {*reuse.new, *now} - reuse.unrun
            if (place := graph.place_of(i)) is not None
            and source_line(place) in made
            and any(_same_operations(graph, i, one) for one in handed)
        ]
        first = reuse.carrier_place
        if self._renewed or reuse.handed_on:  # what a pass makes behind its call it makes for the next one
            return True
        if first is None:
            return False
        ran_again = any(p.run != first.run and p.cell_id is not None and p.cell_id == first.cell_id for p in again)
        return ran_again or (self.made_in_same_pass and bool(again))

    @cached_property
    def _renewed(self) -> bool:
        """Whether a name that led to the old part has got, since then, what the same operations made: its next value.

        That shows a state where lines do not: they are unknown, or two functions make the two calls.
        """
        graph, reuse, before = self.reuse.graph, self.reuse, self.reuse.earlier.graph
        carriers = {_of_an_object(path) for path in reuse.unrun_paths or reuse.carrier_paths}
        now = {_of_an_object(o.path): o.node for o in graph.owners if graph.seq[o.node] >= reuse.earlier.newest_seq}
        handed = {graph.uid[i]: i for i in reuse.unrun or reuse.boundary}
        for owner in before.owners if before is not None else ():
            name = _of_an_object(owner.path)
            old, new = handed.get(before.uid[owner.node]) if before is not None else None, now.get(name)
            if old is not None and new is not None and name in carriers and owner.kind != "out":
                if _same_operations(graph, new, old):
                    return True
        return False

    @cached_property
    def only_added(self) -> bool:
        """Whether the old part reaches the root only in terms of its own, which are added: ``(residual ** 2).mean()``.

        Nothing else that has a graph takes part in such a term: detached, it would have no effect on any gradient. A
        running total is no such term: its terms have had their gradients.
        """
        return not self.reuse.same_root and not self.carried_state and self.adds_the_old_part

    @cached_property
    def adds_the_old_part(self) -> bool:
        """The same, of a state, too, as of the elements that earlier passes have left in a list."""
        graph = self.reuse.graph
        return all(is_added(graph, i) for i in self._mixed)

    @cached_property
    def only_weighs(self) -> bool:
        """Whether the old part only weighs what has a graph of its own, or is compared with it: ``ratio * advantages``.

        A weight that is a leaf, as in a layer, has none.
        """
        graph, old = self.reuse.graph, self.reuse.old | self.reuse.made_of_the_old
        others = self.reuse.new - self.reuse.made_of_the_old
        joints = [i for i in self._mixed if not old.isdisjoint(graph.next(i))]
        weighing = (graph.name_of(i) in _WEIGHING and not others.isdisjoint(graph.next(i)) for i in joints)
        return bool(joints) and all(weighing)

    @property
    def divides_by_their_number(self) -> bool:
        """Whether the old part may be counted where it is added, as in a mean: without it, other terms weigh more."""
        return any(self.reuse.graph.name_of(i) in ("MeanBackward0", "DivBackward0") for i in self._mixed)

    @cached_property
    def _mixed(self) -> frozenset[int]:
        """The nodes that join the old part and others on the way to the root."""
        reuse = self.reuse
        if not reuse.brings_leaves:
            return frozenset(reuse.new)  # there is no other term
        return frozenset((reuse.leading_to(reuse.boundary) & reuse.new) - reuse.made_of_the_old)

    @property
    def one_cell_builds_the_rest(self) -> bool:
        """Whether one run of a cell made all nodes that have to be fresh, except those of the later call's own run."""
        graph, carrier = self.reuse.graph, self.reuse.carrier_place
        places = [graph.place_of(i) for i in self.reuse.needed if graph.seq[i] >= 0]
        runs = {p.run if p is not None else None for p in places} - {self.reuse.later.place.run}
        return carrier is not None and runs == {carrier.run}

    @cached_property
    def grad_used(self) -> bool:
        """Whether the later root was made from a gradient that the earlier call returned without a graph."""
        earlier, later = self.reuse.earlier, self.reuse.later
        begins, ends = at(earlier.place), at(later.place)
        if earlier.api != "autograd.grad" or earlier.create_graph or begins is None or ends is None or begins == ends:
            return False
        text = self.text_of_cell(ends[0])
        there = source.beginning_at(text, ends[1]) or source.statements_at(text, ends[1])[-1:]
        function = source.function_at(text, ends[1])
        flow = Flow(self._cells.texts, [begins])
        inside = function[1] if function is not None else None
        return any(flow.reaches(ends[0], root, inside) for one in there for root in source.roots_of_calls(one))

    # names

    @property
    def root_name(self) -> str:
        """The later call's root by its name, or the expression on which it was called."""
        return root_name(self.reuse.later)

    def leaf_names(self, indices: Iterable[int]) -> tuple[str, ...]:
        """The names of leaves, each once."""
        return tuple(dict.fromkeys(map(self._leaf_name, sorted(indices))))

    def _leaf_name(self, index: int) -> str:
        leaf = self.reuse.graph.leaves.get(index)
        return lasting_name(self.reuse.record, leaf.paths) if leaf and leaf.paths else "a leaf without a name"

    @cached_property
    def carrier_names(self) -> tuple[str, ...]:
        """The carriers' paths; where there is none, what the line that made the carrier assigns."""
        known, made = self.reuse.carrier_paths, self.reuse.carrier_place
        if known or not self.reuse.carrier_is_assigned or made is None or not made.line:
            return known
        found = source.statements_at(self.text_of_cell(made.cell), made.line)
        return tuple(source.targets(found[-1])) if found else ()

    def forgets(self, at: Spot | None) -> Callable[[str], bool]:
        """Whether the variable that a path begins with carries nothing from the earlier call to the later one.

        The loop around the line `at`, in which both calls are, assigns it in each pass; or it has ended.
        """
        reassigned = source.forgotten(self.text_of_cell(at[0]), at[1]) if at is not None else set[str]()
        return lambda path: root_of(path) in reassigned or self.has_ended(path)

    def has_ended(self, path: str) -> bool:
        """Whether a path was that of the function that makes the calls, and ended when this returned between them."""
        if path in self._variables and not path.startswith(f"{self._function}:"):
            return False  # of a cell, or of another function
        ended, shared = self._ended
        root = root_of(path)
        return root in ended and (root == local(path) or root not in shared)

    @cached_property
    def _ended(self) -> tuple[set[str], set[str]]:
        """The variables that have ended with the function that made both calls by one line, and which are shared."""
        place = self.reuse.later.place
        text = self.text_of_cell(place.cell)
        found = source.function_at(text, place.line) if place.line is not None else None
        recursive = any(one.function == place.function for one in place.stack)
        if not self.repeated or place.line is None or found is None or found[1].name != self._function or recursive:
            return set(), set()
        return source.ended(text, place.line), source.shared(text, place.line)

    @property
    def _function(self) -> str:
        """The name of the function that made the later call; empty: none did."""
        return (self.reuse.later.place.function or "").rpartition(".")[2]

    @cached_property
    def _variables(self) -> set[str]:
        """All paths that hold a tensor: one of a function has the function's name before it."""
        return {owner.path for graph in self._graphs for owner in graph.owners}

    @property
    def _graphs(self) -> list[Snapshot]:
        """The graph of now, and that of the earlier call."""
        return [graph for graph in (self.reuse.graph, self.reuse.earlier.graph) if graph is not None]

    def lasting(self, names: tuple[str, ...], at: Spot | None) -> tuple[str, ...]:
        """The paths that carry over to the next pass of the loop at a line, else others of the same tensors."""
        reuse, forgotten = self.reuse, self.forgets(at)
        uids = {reuse.graph.uid[i] for i in reuse.boundary}
        others = tuple(o.path for g in self._graphs for o in g.owners if g.uid[o.node] in uids and o.kind != "out")
        put = tuple(path for run in reuse.record.runs.values() for path in containers.taken_in(run.source, names))
        kept = (tuple(path for path in some if not forgotten(path)) for some in (names, others, put))
        return next(filter(None, kept), ())


def _of_an_object(path: str) -> str:
    """A path to an attribute without the function that has a variable for the object: several may have one."""
    return local(path) if "." in local(path) else path


def _same_operations(graph: Snapshot, a: int, b: int) -> bool:
    """Whether two nodes may come from the same code: the same operation, of results of the same operations.

    One of them may have fewer: in a first pass, a state has no graph yet, or is a leaf.
    """
    if graph.name_of(a) != graph.name_of(b):
        return False
    inputs = [[graph.name_of(i) for i in graph.next(one) if graph.kind[i] != Kind.ACCUMULATE] for one in (a, b)]
    fewer, more = sorted(inputs, key=len)
    rest = iter(more)
    return all(name in rest for name in fewer)  # in the same order
