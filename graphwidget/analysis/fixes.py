"""Ways out of a failing call: candidates in the order in which a person should try them, each simulated.

The order follows two questions. Is the part that was reached again needed a second time on purpose
(several losses, the same loss), or was it carried over? And would cutting it off take the gradient
from leaves that have no other way to it? An optimizer step in between rules out keeping the graph:
the saved weights are then out of date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from graphwidget.analysis import detaching, edits, engine, fitting, source
from graphwidget.analysis.cutting import Crossing, Crossings
from graphwidget.analysis.rewriting import Rerun, rerun
from graphwidget.analysis.story import Meeting, root_name, spoken
from graphwidget.analysis.surgery import anything_stale, cut, reachable, with_nodes_held, with_nothing_stale
from graphwidget.analysis.words import at, no_gradient, outer_at, short, size, where
from graphwidget.model import BackwardCall, Fix, Forecast, Place, Snapshot, TensorRef


def simulate(graph: Snapshot, call: BackwardCall, roots: tuple[TensorRef, ...] | None = None) -> Forecast:
    """What `call` would do on `graph`."""
    return engine.forecast(
        graph,
        roots if roots is not None else call.roots,
        inputs=call.inputs,
        retain_graph=call.retain_graph,
        create_graph=call.create_graph,
        api=call.api,
        grad_given=True,
    )


def kept_bytes(meeting: Meeting) -> int:
    """Bytes that the old part would keep if the earlier call had retained."""
    graph = meeting.graph
    return sum(
        graph.slot_bytes[slot]
        for index in meeting.old
        for slot in graph.slots_of(index)
        if graph.slot_freed_by[slot] == meeting.earlier.n
    )


_SUM_COSTS_NOTHING = "Same gradients, one pass, nothing retained."


@dataclass(frozen=True)
class Cut:
    """An edit that detaches tensors, what it says, and the edges (positions) that are not there after it."""

    sentence: str
    at: fitting.Spot | None
    edit: edits.Edit
    edges: frozenset[int]


class Candidates:
    """Fixes for one meeting. Each method makes one candidate, simulated; None where it makes no sense."""

    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting
        self.later = meeting.later
        self.earlier = meeting.earlier

    # simulations

    def _kept_is_stale(self) -> bool:
        """Whether something that the earlier call freed has been modified in place since."""
        graph = self.meeting.graph
        written = {key for write in self.meeting.writes_between for key in write.storages}
        before = self.earlier.graph or graph
        for uid in self.earlier.executed:
            index = before.index_of.get(uid)
            for slot in before.slots_of(index) if index is not None else ():
                storage = before.slot_storage[slot]
                if storage >= 0 and before.storages.key[storage] in written:
                    return True
        return bool(self.meeting.steps_between and not self.earlier.graph)

    def works_if_kept(self) -> bool:
        """As if the earlier call had retained."""
        return not self._kept_is_stale() and self._held_works

    def works_if_fresh(self) -> bool:
        """As if the old part had been built anew."""
        if not anything_stale(self.meeting.graph):
            return self._held_works
        return self._fresh_works

    @cached_property
    def _held_works(self) -> bool:
        return simulate(with_nodes_held(self.meeting.graph, self.meeting.old), self.later).ok is True

    @cached_property
    def _fresh_works(self) -> bool:
        graph = with_nothing_stale(with_nodes_held(self.meeting.graph, self.meeting.old))
        return simulate(graph, self.later).ok is True

    def _works_if(self, made: Cut) -> bool:
        graph = cut(self.meeting.graph, made.edges)
        if simulate(graph, self.later).ok is not True:
            return False
        left = reachable(graph, self.meeting.root_indices)
        wanted = {ref.node for ref in self.later.inputs} if self.later.inputs else set(graph.leaves)
        return bool(left & wanted)

    def _works_if_earlier(self, made: Cut) -> bool:
        """As if the earlier call had freed only what it would still have reached."""
        graph, before = self.meeting.graph, self.earlier.graph
        if before is None:
            return False
        still = reachable(cut(before, made.edges), (root.node for root in self.earlier.roots))
        freed = {before.uid[index] for index in still}
        spared = [index for index in self.meeting.old if graph.uid[index] not in freed]
        return simulate(with_nodes_held(graph, spared), self.later).ok is True

    # candidates

    def retain(self) -> Fix:
        price = f"{size(kept_bytes(self.meeting))} of saved tensors stay until the graph goes."
        if self.meeting.in_loop:
            price += " The last iteration need not retain."
        return Fix(
            "retain_graph_earlier_call",
            f"Keep what {self._call(self.earlier)} frees: pass `retain_graph=True` there.",
            self.works_if_kept(),
            at(self.earlier.place),
            price,
            self._with_keyword("retain_graph=True"),
        )

    def create_graph(self) -> Fix:
        return Fix(
            "create_graph",
            f"The loss uses this gradient: pass `create_graph=True` in {self._call(self.earlier)}.",
            self.works_if_kept(),
            at(self.earlier.place),
            "It keeps the graph, and builds one for the gradient.",
            self._with_keyword("create_graph=True"),
        )

    def recompute(self) -> Fix | None:
        plan: Rerun | None = rerun(self.meeting)
        if plan is None:
            return None
        return Fix(
            "recompute_in_loop",
            plan.sentence,
            self.works_if_fresh(),
            plan.at,
            "One more forward pass of that part.",
            plan.edit,
        )

    def detach(self) -> Fix | None:
        if not self.meeting.brings_leaves:
            return None  # nothing would be left to reach
        lost = self.meeting.leaves_lost
        cells = fitting.cells_of(self.meeting.record)
        found = self._cuts_between() if self._carried else self._cuts_at_use()
        cuts = [c for c in found if c.at is None or not c.edit or fitting.fits(cells, c.at, c.edit)]
        if not cuts:
            return None
        working = next((one for one in cuts if self._works_if(one)), None)
        made = working or cuts[0]
        price = f"Then {no_gradient(lost, 'from this call')}" if lost else self._price_of_cut()
        return Fix("detach", made.sentence, working is not None, made.at, price, made.edit)

    def detach_in_earlier(self) -> Fix | None:
        made = self._first_use_cut(self.earlier)
        lost = self.meeting.leaves_lost
        price = f"Then {no_gradient(lost, 'from ' + self._call(self.earlier))}" if lost else ""
        return Fix("detach", made.sentence, self._works_if_earlier(made), made.at, price, made.edit) if made else None

    def sum_of_losses(self) -> Fix | None:
        if not self.earlier.api == self.later.api == "backward":
            return None
        whole, edit, line = self._summed()
        works = self.works_if_fresh() and (bool(edit) or not self.meeting.built_after)
        return Fix(
            "single_backward_sum",
            f"Run backward once: `{whole}.backward()`.",
            works,
            line,
            "One pass, and one step for all." if self.meeting.steps_between else _SUM_COSTS_NOTHING,
            edit,
        )

    def sum_in_loop(self) -> Fix | None:
        """The same where it can be told from the loop that it only runs what was made before."""
        fix = self.sum_of_losses() if self.meeting.in_loop else None
        return fix if fix is not None and fix.edit else None

    def rerun_cell(self) -> Fix | None:
        meeting = self.meeting
        made = meeting.graph.place_of(meeting.root_indices[0]) if meeting.root_indices else None
        made = made if meeting.same_root else meeting.carrier_place
        cell = f"In[{made.outer_cell or made.cell}]" if made is not None and made.cell is not None else "its cell"
        again = made is not None and made.cell_id is not None and made.cell_id == self.later.place.cell_id
        what = meeting.root_name if meeting.same_root else meeting.carrier
        if re.match(r"_\d+\b|Out\[", what):
            return None  # what a cell displayed goes by the number of that run
        return Fix(
            "rerun_forward_cell",
            f"Run {cell} again before this one: it computes `{what}` anew.",
            self.works_if_fresh() and not again and (meeting.same_root or meeting.one_cell_builds_the_rest),
            outer_at(made),
            "One more forward pass.",
        )

    def remove_duplicate(self) -> Fix | None:
        if not self.meeting.same_call:
            return None
        line, call = self._statement(self.later.place), self._call(self.later)
        what = f"{short(line)} ({call})" if line else call  # a button's call has no line
        return Fix(
            "remove_duplicate_call",
            f"Remove {what}: {self._call(self.earlier)} has run this backward.",
            True,
            at(self.later.place),
            "Nothing is lost: `.grad` has been filled by the first call.",
            (f"- {line}",) if line and "\n" not in line else (),
        )

    def clear(self) -> Fix:
        buffer = detaching.local(self.meeting.buffer or self.meeting.carrier)
        works, price = self.works_if_fresh(), "What it holds is used once."
        plan = rerun(self.meeting) if not self.meeting.in_loop else None
        if plan is not None and plan.at is not None:
            here = f"In[{plan.at[0]}], line {plan.at[1]}"
            text = f"Empty `{buffer}` before {here} and fill it again. {plan.sentence}"
            return Fix("clear_buffer", text, works, plan.at, price, (f"+ {buffer}.clear()", *plan.edit))
        place = self._after_call(self.earlier, self.later.carriers[:1])
        edit = edits.after(self._cell(place), place[1], [f"{buffer}.clear()"]) if place is not None else ()
        text = f"Empty `{buffer}` after {self._call(self.earlier)}: `{buffer}.clear()`."
        return Fix("clear_buffer", text, works, place, price, edit)

    # where to cut

    @property
    def _carried(self) -> bool:
        """Whether the carrier comes from an earlier pass through the code that makes it."""
        made, later = self.meeting.carrier_place, self.later.place
        if self.meeting.carried_state:
            return True
        inside = made is not None and made.run == later.run and made.iteration is not None
        return self.meeting.repeated and inside and made is not None and self._within_loop(made)

    def _within_loop(self, made: Place) -> bool:
        run, line = self.meeting.run_of(self.later.place), self.later.place.outer_line
        loop = source.loop_at(run.source, line) if run is not None and line is not None else None
        return loop is not None and loop.lineno <= (made.outer_line or 0) <= (loop.end_lineno or 0)

    def _names(self) -> tuple[str, ...]:
        """What to cut between two passes: what hangs on the old part already, or the carriers themselves."""
        return self.meeting.names_before or self.meeting.border_names

    def _cuts_between(self) -> Iterator[Cut]:
        """After a call, cut what the next pass starts from: what is known to be met, then all that it uses."""
        paths = self._names()
        place = self._after_call(self.later, paths)
        anew = source.forgotten(self._cell(place), place[1]) if place is not None else set[str]()
        carried = tuple(self._crossings(anew).carried())
        if place is not None:
            paths = self.meeting.lasting(paths, anew)
        every = dict.fromkeys((*paths, *sorted(name for one in carried for name in one.names)))
        for some in dict.fromkeys((paths, tuple(every))):
            lines = self._detached(some)
            if lines and place is not None:
                where_to = f"In[{place[0]}], line {place[1]}"
                edit = edits.after(self._cell(place), place[1], lines)
                sentence = f"Cut the graph between passes: {', '.join(map(short, lines))} after {where_to}."
                yield Cut(sentence, place, edit, _through(carried, some))
        yield from self._cut_before_maker()

    def _as_written(self, paths: Collection[str], place: Place) -> Iterator[tuple[str, str]]:
        """Paths as a line may write them, each with the path; in a method, `gan.fake` may be called `self.fake`."""
        method = source.method_at(self.meeting.text_of_cell(place.cell), place.line or 0)
        for path in filter(detaching.is_code, map(detaching.local, paths)):
            yield path, path
            if method is not None and "." in path:
                yield "self." + path.split(".", 1)[1], path

    def _detached(self, paths: tuple[str, ...]) -> list[str]:
        """The statements that cut the graph at these tensors."""
        elements = [owner.path for owner in self.meeting.graph.owners if owner.kind == "element"]
        return detaching.detached(paths, self._cells, elements)

    def _cut_before_maker(self) -> Iterator[Cut]:
        made = self.meeting.carrier_place
        if made is None or made.cell is None or made.line is None:
            return
        cell = self.meeting.text_of_cell(made.cell)
        found = source.statements_at(cell, made.line)
        kept = [n for n in source.targets(found[-1]) if n in source.names_read(found[-1])] if found else []
        if not kept:
            return
        lines = [f"{name} = {name}.detach()" for name in dict.fromkeys(kept)]
        sentence = f"Cut the graph between passes: {', '.join(map(short, lines))} before {where(made)}."
        yield Cut(sentence, at(made), edits.before(cell, made.line, lines), _through(self._crossings().carried(), kept))

    def _cuts_at_use(self) -> Iterator[Cut]:
        """Read the carrier detached where the call's own part begins; all that leads into the old part, wherever that
        is; else detach it where it was made."""
        first = self._first_use_cut(self.later)
        every = self._every_use_cut() if first is not None else None
        yield from filter(None, (first, every))
        if first is None:
            yield from self._cut_where_made()

    def _first_use_cut(self, call: BackwardCall) -> Cut | None:
        crossings = self._crossings() if call is self.later else self._earlier_crossings()
        if crossings is None:
            return None
        for place in self.meeting.uses_by(call):
            found = self._read_detached(place, self.meeting.border_names, crossings)
            if found is not None:
                return found
        return None

    def _every_use_cut(self) -> Cut | None:
        crossings = self._crossings()
        parts: list[Cut] = []
        for place in self.meeting.uses_by(self.later):
            into = [one for one in crossings.read_at(place) if one.tensor in self.meeting.boundary]
            part = self._read_detached(place, sorted({name for one in into for name in one.names}), crossings)
            parts += [part] if part is not None and part not in parts else []
        parts.sort(key=lambda one: one.at or (0, 0))
        spots = [(one.at, one.edit) for one in parts if one.at is not None]
        joined = fitting.joined(fitting.cells_of(self.meeting.record), spots) if spots else None
        if joined is None:
            return None
        sentence = " ".join(one.sentence for one in parts)
        return Cut(sentence, *joined, frozenset(edge for one in parts for edge in one.edges))

    def _crossings(self, anew: Collection[str] = ()) -> Crossings:
        return Crossings(self.meeting, self.meeting.graph, self.meeting.new, anew)

    def _earlier_crossings(self) -> Crossings | None:
        """What the earlier call ran into, on the graph as it was then."""
        before = self.earlier.graph
        if before is None:
            return None
        return Crossings(self.meeting, before, reachable(before, (root.node for root in self.earlier.roots)))

    def _read_detached(self, place: Place, paths: Collection[str], crossings: Crossings) -> Cut | None:
        """Have a line read these tensors detached."""
        old = new = self.meeting.text_of(place)
        cut, done = list[str](), set[str]()
        for written, path in self._as_written(paths, place):
            edit = edits.with_name(new, written, f"{written}.detach()")
            if edit:
                new = edit[-1].removeprefix("+ ")
                cut.append(f"`{written}.detach()`")
                done.add(path)
        if not cut:
            return None
        sentence = f"Use {' and '.join(cut)} in {short(old)} ({where(place)})."
        gone = _through(crossings.read_at(place), done)
        return Cut(sentence, at(place), edits.replaced(old, new), gone)

    def _cut_where_made(self) -> Iterator[Cut]:
        made, paths = self.meeting.carrier_place, self.meeting.border_names
        lines = self._detached(paths)
        spot = outer_at(made) if self.meeting.names else at(made)
        if not lines or made is None or spot is None:
            return
        if source.loop_at(self._cell(spot), spot[1]) is not None:
            return  # each pass made one, and the next began from it
        sentence = f"Cut the graph where it was made: {short(lines[0])} after In[{spot[0]}], line {spot[1]}."
        gone = _through(self._crossings().behind(spot), paths)
        yield Cut(sentence, spot, edits.after(self._cell(spot), spot[1], lines), gone)

    def _after_call(self, call: BackwardCall, paths: tuple[str, ...]) -> tuple[int, int] | None:
        """The line after which a carrier can be cut between passes: of the call, in the function that loops, or else
        of the cell. None: of another function, which cannot see the carrier."""
        frames = {path.split(":", 1)[0] for path in paths if ":" in path}
        place = call.place
        cell = self.meeting.text_of_cell(place.cell)
        here = source.function_at(cell, place.line) if place.line is not None else None
        if here is None:
            return outer_at(place)
        if here[1].name in frames:
            return at(place)
        if not self.meeting.loops_in_function:
            return outer_at(place)
        assigns = {
            name for statement in ast.walk(here[1]) if isinstance(statement, ast.Global) for name in statement.names
        }
        seen = all(not path.isidentifier() or path in assigns for path in paths)
        return at(place) if seen and not frames else None

    # words

    def _price_of_cut(self) -> str:
        leaves = {
            self.meeting.leaf_name(i)
            for i in self.meeting.reached
            if i in self.meeting.graph.leaves and i not in self.meeting.exclusive_leaves
        }
        through = f"through `{spoken(self._names()[0])}`" if self._names() else "through the old part"
        earlier = "from earlier iterations" if self.meeting.in_loop else "from earlier runs"
        when = earlier if self._carried else through
        return f"Then {no_gradient(tuple(sorted(leaves)), when)}" if leaves else ""

    @property
    def _cells(self) -> list[str]:
        return [run.source for run in self.meeting.record.runs.values()]

    def _cell(self, place: tuple[int, int] | None) -> str:
        return self.meeting.text_of_cell(place[0]) if place is not None else ""

    def _statement(self, place: Place) -> str:
        return self.meeting.text_of(place)

    def _with_keyword(self, keyword: str) -> edits.Edit:
        """The earlier call with one more keyword; written on one line where it was written over several."""
        place = self.earlier.place
        cell = self.meeting.text_of_cell(place.cell)
        found = source.statements_at(cell, place.line) if place.line is not None else []
        if found and not hasattr(found[-1], "body") and found[-1].lineno != found[-1].end_lineno:
            edit = edits.with_keyword(ast.unparse(found[-1]), keyword)
            return (*(f"- {line}" for line in edits.statement_text(cell, found[-1])), *edit[1:]) if edit else ()
        return edits.with_keyword(self._statement(place), keyword, root_name(self.earlier))

    def _call(self, call: BackwardCall) -> str:
        return where(call.place) or f"call {call.n + 1}"

    def _summed(self) -> tuple[str, edits.Edit, tuple[int, int] | None]:
        if self.meeting.one_comprehension or self.meeting.in_loop:
            return self._summed_in_loop(self._statement(self.earlier.place), root_name(self.earlier))
        one, two = self._plain_call(self.earlier), self._plain_call(self.later)
        if one is None or two is None:
            return f"({root_name(self.earlier)} + {root_name(self.later)})", (), at(self.earlier.place)
        whole = f"({source.backward_root(ast.unparse(one))} + {source.backward_root(ast.unparse(two))})"
        return whole, self._joined(one, two, f"{whole}.backward()"), at(self.earlier.place)

    def _joined(self, one: ast.stmt, two: ast.stmt, new: str) -> edits.Edit:
        """`new` in place of two statements, which may stand on one line."""
        cells = [self.meeting.text_of_cell(call.place.cell) for call in (self.earlier, self.later)]
        if cells[0] == cells[1] and one.lineno == two.lineno:
            rest = [s for s in source.beginning_at(cells[0], one.lineno) if s is not two]
            texts = (new if s is one else ast.unparse(s) for s in rest)
            return edits.replaced(source.line_text(cells[0], one.lineno), "; ".join(texts))
        lines = [line for cell, s in zip(cells, (one, two)) for line in edits.statement_text(cell, s)]
        return (*(f"- {line}" for line in lines), f"+ {new}")

    def _plain_call(self, call: BackwardCall) -> ast.stmt | None:
        """The statement that is a call of backward without anything else."""
        cell, line = self.meeting.text_of_cell(call.place.cell), call.place.line
        found = source.statements_at(cell, line)[-1:] if line is not None else []
        here = source.beginning_at(cell, found[0].lineno) if found else []
        roots = {source.backward_root(ast.unparse(s)): s for s in reversed(here)}
        roots.pop(None, None)
        return roots.get(root_name(call), next(iter(roots.values()), None) if len(here) == 1 else None)

    def _summed_in_loop(self, line: str, first: str) -> tuple[str, edits.Edit, tuple[int, int] | None]:
        """``for l in losses: l.backward()`` or the comprehension, as ``sum(losses).backward()``."""
        place = self.later.place
        cell = self.meeting.text_of_cell(place.cell)
        if self.meeting.one_comprehension:
            whole = f"sum({first.split('[', 1)[0]})" if "[" in first else "total"
            return whole, edits.replaced(line, f"{whole}.backward()") if "[" in first else (), at(place)
        loop = source.loop_at(cell, place.line) if place.line is not None else None
        summed = source.summed(loop, place.line or 0) if isinstance(loop, ast.For) else None
        if loop is None or summed is None or place.cell is None:
            return "total", (), at(place)
        whole, new = summed
        old = edits.statement_text(cell, loop)
        return whole, (*(f"- {one}" for one in old), *(f"+ {one}" for one in new)), (place.cell, loop.lineno)


def _through(crossings: Iterable[Crossing], paths: Collection[str]) -> frozenset[int]:
    """The edges that are gone once these tensors are detached: those of tensors that are reached by no other name."""
    gone = set(map(detaching.local, paths))
    return frozenset(one.edge for one in crossings if one.names <= gone)


def for_second_backward(meeting: Meeting) -> tuple[Fix, ...]:
    """Candidates, in the order of preference of their kind."""
    make = Candidates(meeting)
    order = _same_root_order(meeting, make) if meeting.same_root else _shared_part_order(meeting, make)
    return tuple(fix for candidate in order if (fix := candidate()) is not None)


def _same_root_order(meeting: Meeting, make: Candidates) -> Iterator[Callable[[], Fix | None]]:
    """The later call runs the same tensor, or one inside the old part, once more."""
    if meeting.same_cell_again:
        yield make.rerun_cell
        yield make.retain
        return
    if meeting.called_by_callee:
        yield make.remove_duplicate
    if meeting.steps_between or meeting.in_loop:
        yield make.recompute
        if not meeting.steps_between:
            yield make.retain
        return
    yield make.retain
    yield make.recompute
    if meeting.earlier.place.run == meeting.later.place.run:
        yield make.remove_duplicate


def _shared_part_order(meeting: Meeting, make: Candidates) -> Iterator[Callable[[], Fix | None]]:
    """The later call brought a part of its own and met the old one."""
    stepped = bool(meeting.steps_between)
    if not meeting.built_after:
        yield from _losses_built_before(meeting, make)
    elif meeting.grad_used:
        yield make.create_graph
        yield make.retain
    elif meeting.buffer and meeting.exclusive_leaves:
        yield make.clear
    elif meeting.carried_state or (not meeting.exclusive_leaves and (stepped or meeting.made_on_the_way)):
        yield make.detach
        if not meeting.made_on_the_way:
            yield make.recompute
    elif stepped and not _stepped_behind(meeting) and not meeting.repeated:
        yield make.detach_in_earlier
        yield make.recompute
    elif meeting.repeated and (stepped or meeting.brings_leaves):
        yield make.recompute
        if not stepped:
            yield make.sum_in_loop
            yield make.retain
        yield make.detach
    else:
        if meeting.same_cell_again:
            yield make.rerun_cell
        if not stepped:
            yield make.retain
            yield make.sum_in_loop
        yield make.recompute
        yield make.detach


def _losses_built_before(meeting: Meeting, make: Candidates) -> Iterator[Callable[[], Fix | None]]:
    """Both losses existed when the first call began: they share a part on purpose, or by oversight."""
    if meeting.steps_between:
        yield make.detach
        yield make.recompute
        yield make.sum_in_loop
        return
    yield make.sum_of_losses
    yield make.retain
    yield make.detach


def _stepped_behind(meeting: Meeting) -> bool:
    """Whether a step in between modified a leaf that only the old part reaches."""
    behind = {path for i in meeting.exclusive_leaves for path in meeting.graph.leaves[i].paths}
    return bool(behind & meeting.stepped_leaves)
