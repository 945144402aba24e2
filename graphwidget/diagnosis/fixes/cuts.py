"""Where to cut the graph between two calls that met, so that one no longer runs into what the other ran.

If each pass carries tensors over to the next one, cut after a call, before the next pass starts from them. If they were
made once, read them detached where they are used, or cut where they were made. Which cut works is not asked here: all
are handed out, each with its sentence, its edit and the edges that the edit cuts, for `fixes` to try.

`detaching` writes the lines, `crossings` tells which edges they cut, `surgery` cuts these in a copy of the graph.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from graphwidget.diagnosis.reuse.crossings import Crossing, Crossings
from graphwidget.diagnosis.reuse.reached import comes_by
from graphwidget.diagnosis.reuse.story import Meeting, spoken
from graphwidget.diagnosis.source import containers, detaching, edits, fitting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import at, no_gradient, outer_at, short, where
from graphwidget.engine.what_if import cut, reachable
from graphwidget.model import BackwardCall, Place

__all__ = ["Cut", "Cuts", "after_call"]


@dataclass(frozen=True)
class Cut:
    """An edit that detaches tensors, what it says, and the edges (positions) that are not there after it.

    `edges` are the later call's, `before` are those of the graph that the earlier one ran.
    Not `sure`: it rebuilds a container of which nobody knows what it is, or reads a name that may have no tensor.
    """

    sentence: str
    at: fitting.Spot | None
    edit: edits.Edit
    edges: frozenset[int]
    before: frozenset[int] = frozenset()
    sure: bool = True


class Cuts:
    """The cuts for one meeting, in the order in which to try them."""

    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting

    def for_later(self) -> Iterator[Cut]:
        """Those after which the later call does not reach the old part."""
        return self._between() if self._carried else self._at_use()

    def for_earlier(self) -> Cut | None:
        """The one after which the earlier call does not reach what both share."""
        return self._first_use(self.meeting.earlier) if self._earlier_crossings is not None else None

    def price(self, made: Cut) -> str:
        """What leaves lose by a cut after which the later call does not reach the old part."""
        meeting, before = self.meeting, self.meeting.earlier.graph
        if not meeting.exclusive_leaves:
            return self._lost_through(made)
        either = set[int]()
        if before is not None:
            still = reachable(cut(before, made.before), (root.node for root in meeting.earlier.roots))
            uids = {before.uid[index] for index in still}
            either = {index for index in meeting.exclusive_leaves if meeting.graph.uid[index] not in uids}
        lost = ((either, "from either call"), (meeting.exclusive_leaves - either, "from this call"))
        return "Then " + " ".join(no_gradient(meeting.leaf_names(some), why) for some, why in lost if some)

    def _lost_through(self, made: Cut) -> str:
        """What leaves lose that the later call reaches in another way, too."""
        meeting, names = self.meeting, self._names
        below = reachable(meeting.graph, {meeting.graph.edge_to[edge] for edge in made.edges} or meeting.boundary)
        leaves = meeting.leaf_names(meeting.reached & below & set(meeting.graph.leaves))
        through = f"through `{spoken(names[0])}`" if names else "through the old part"
        earlier = "from earlier iterations" if meeting.in_loop else "from earlier runs"
        when = earlier if self._carried else through
        return f"Then {no_gradient(leaves, when)}" if leaves else ""

    @property
    def _carried(self) -> bool:
        """Whether the carrier comes from an earlier pass through the code that makes it."""
        made, later = self.meeting.carrier_place, self.meeting.later.place
        if self.meeting.carried_state:
            return True
        inside = made is not None and made.run == later.run and made.iteration is not None
        return self.meeting.repeated and inside and made is not None and self._within_loop(made)

    def _within_loop(self, made: Place) -> bool:
        later = self.meeting.later.place
        run, line = self.meeting.run_of(later), later.outer_line
        loop = source.loop_at(run.source, line) if run is not None and line is not None else None
        return loop is not None and loop.lineno <= (made.outer_line or 0) <= (loop.end_lineno or 0)

    @property
    def _names(self) -> tuple[str, ...]:
        """What to cut between two passes: what hangs on the old part already, or the carriers themselves."""
        return self.meeting.names_before or self.meeting.border_names

    # between two passes

    def _between(self) -> Iterator[Cut]:
        """After a call, cut what the next pass starts from: what is known to be met, then all that it uses."""
        paths = self._names
        place = after_call(self.meeting, self.meeting.later, paths)
        place = place if place is not None and comes_by(self.meeting, place) else None
        anew = source.forgotten(self._cell(place), place[1]) if place is not None else set[str]()
        carried = tuple(self._crossings(anew).carried())
        if place is not None:
            paths = self.meeting.lasting(paths, anew)
        every = dict.fromkeys((*paths, *sorted(name for one in carried for name in one.names)))
        if place is not None:
            yield from self._handed_over(place, carried)
            yield from self._kept_detached(place, carried)
        for some in dict.fromkeys((paths, tuple(every))):
            lines = self._detached(some)
            if lines and place is not None:
                lines = self._as_a_method_writes(lines, some, place)
                lines = _in_what_was_given(self._cell(place), place[1], lines)
                where_to = f"In[{place[0]}], line {place[1]}"
                edit = edits.after(self._cell(place), place[1], lines)
                sentence = f"Cut the graph between passes: {', '.join(map(short, lines))} after {where_to}."
                sure = self._detaching.sure(some) and self._tensors_there(some, place)
                yield Cut(sentence, place, edit, _through(carried, some), sure=sure)
        yield from self._before_maker()

    def _handed_over(self, place: fitting.Spot, carried: Collection[Crossing]) -> Iterator[Cut]:
        """The lines that hand a tensor over to the next pass, ``prev = out``, hand it over detached."""
        cell = self._cell(place)
        loop = source.loop_at(cell, place[1])
        names = {name for one in carried for name in one.names}
        edits_at: list[tuple[fitting.Spot, edits.Edit]] = []
        gone: set[str] = set()
        for statement, target, value in source.hand_overs(loop, place[1]) if loop is not None else ():
            line = source.line_text(cell, statement.lineno)
            if target in names and line == ast.unparse(statement):
                new = f"{target} = {value}.detach()"
                edits_at.append(((place[0], statement.lineno), edits.replaced(line, new)))
                gone |= {target, value}
        joined = fitting.joined(fitting.cells_of(self.meeting.record), edits_at) if edits_at else None
        if joined is None:
            return
        shown = ", ".join(short(step[2:]) for step in joined[1] if step.startswith("+"))
        sentence = f"Hand it over detached: {shown} (In[{place[0]}], line {joined[0][1]})."
        yield Cut(sentence, *joined, _through(carried, gone))

    def _kept_detached(self, place: fitting.Spot, carried: Collection[Crossing]) -> Iterator[Cut]:
        """The line of the loop that puts the tensor into a container puts it in detached: ``temp.append(h.detach())``.

        Only if no later line of the pass, up to the call, reads the container: what it reads would have no graph.
        """
        cell, paths = self._cell(place), list(map(local, self._names))
        holders = {path.split("[", 1)[0] for path in paths}
        loop = source.loop_at(cell, place[1])
        if loop is None or len(holders) != 1 or not all("[" in path for path in paths):
            return
        (holder,) = holders
        spots = containers.kept_detached(cell, holder, {path[len(holder) :] for path in paths})
        if not spots or not all(loop.lineno < line <= (loop.end_lineno or 0) for line, _ in spots):
            return
        last, word = min(line for line, _ in spots), holder.rsplit(".", 1)[-1]
        if any(word in source.words_in(s) for s in source.between(cell, last, place[1])):
            return
        joined = fitting.joined(fitting.cells_of(self.meeting.record), [((place[0], n), edit) for n, edit in spots])
        if joined is None:
            return
        shown = " and ".join(short(edit[-1][2:]) for _, edit in spots)
        gone = {name for one in carried for name in one.names if name.startswith(f"{holder}[")}
        sentence = f"Keep it detached: {shown} (In[{place[0]}], line {last})."
        yield Cut(sentence, *joined, _through(carried, {*paths, *gone}))

    def _as_a_method_writes(self, lines: list[str], paths: Collection[str], place: fitting.Spot) -> list[str]:
        """``self.state`` for ``trainer.state`` in a method of the class in which it was made and is set."""
        cell, made = self._cell(place), self.meeting.carrier_place
        owner = (source.function_at(cell, place[1]) or (None,))[0]
        if owner is None or source.method_at(cell, place[1]) is None or made is None or made.cell != place[0]:
            return lines
        if not owner.lineno <= (made.line or 0) <= (owner.end_lineno or 0):
            return lines
        for path in map(local, paths):
            root, _, rest = path.partition(".")
            name = re.split(r"\W", rest)[0]
            if any(f"self.{name}" in source.targets(s) for s in ast.walk(owner) if isinstance(s, ast.stmt)):
                lines = [re.sub(rf"\b{re.escape(root)}\.{name}\b", f"self.{name}", line) for line in lines]
        return lines

    def _tensors_there(self, paths: Collection[str], place: fitting.Spot) -> bool:
        """Whether each of the variables is a tensor when a line is reached for the first time, as far as texts tell."""
        cells = fitting.cells_of(self.meeting.record)
        names = [name for name in map(local, paths) if name.isidentifier()]
        return all(source.set_at(list(cells.values()), cells.get(place[0], ""), place[1], name) for name in names)

    def _before_maker(self) -> Iterator[Cut]:
        """Before the line that makes the next state, cut the state that it starts from."""
        made = self.meeting.carrier_place
        if made is None or made.cell is None or made.line is None:
            return
        cell = self.meeting.text_of_cell(made.cell)
        found = source.statements_at(cell, made.line)
        kept = [n for n in source.targets(found[-1]) if n in source.paths_read(found[-1])] if found else []
        if (
            not kept
            or any(map(self._detaching.is_container, kept))
            or not comes_by(self.meeting, (made.cell, made.line))
        ):
            return
        lines = [f"{name} = {name}.detach()" for name in dict.fromkeys(kept)]
        sentence = f"Cut the graph between passes: {', '.join(map(short, lines))} before {where(made)}."
        carried = tuple(self._crossings().carried())
        known = {name for one in carried for name in one.names}
        written = {name for name in known if any(_is_in_method(name, path) for path in kept)}
        if not all(path in known or any(_is_in_method(name, path) for name in known) for path in kept):
            return  # perhaps no tensor
        gone = _through(carried, {*kept, *written})
        yield Cut(sentence, at(made), edits.before(cell, made.line, lines), gone)

    # where they are used, or were made

    def _at_use(self) -> Iterator[Cut]:
        """Read the carrier detached where the call's own part begins; all that leads into the old part, wherever that
        is; else detach it where it was made."""
        first = self._first_use(self.meeting.later)
        every = self._every_use() if first is not None else None
        yield from filter(None, (first, every))
        if first is None:
            yield from self._where_made()

    def _first_use(self, call: BackwardCall) -> Cut | None:
        crossings = self._crossings()
        for place in self.meeting.uses_by(call):
            found = self._read_detached(place, self.meeting.border_names, crossings)
            if found is not None:
                return found
        return None

    def _every_use(self) -> Cut | None:
        crossings = self._crossings()
        parts: list[Cut] = []
        for place in self.meeting.uses_by(self.meeting.later):
            into = [one for one in crossings.read_at(place) if one.tensor in self.meeting.boundary]
            part = self._read_detached(place, sorted({name for one in into for name in one.names}), crossings)
            parts += [part] if part is not None and part not in parts else []
        parts.sort(key=lambda one: one.at or (0, 0))
        spots = [(one.at, one.edit) for one in parts if one.at is not None]
        joined = fitting.joined(fitting.cells_of(self.meeting.record), spots) if spots else None
        if joined is None:
            return None
        sentence = " ".join(one.sentence for one in parts)
        edges, before = (frozenset[int]().union(*some) for some in zip(*((one.edges, one.before) for one in parts)))
        return Cut(sentence, *joined, edges, before)

    def _read_detached(self, place: Place, paths: Collection[str], crossings: Crossings) -> Cut | None:
        """Have a line read these tensors detached."""
        old = new = self.meeting.text_of(place)
        read, done = list[str](), set[str]()
        for written, path in self._as_written(paths, place):
            edit = edits.with_name(new, written, f"{written}.detach()")
            if edit:
                new = edit[-1].removeprefix("+ ")
                read.append(f"`{written}.detach()`")
                done.add(path)
        if not read:
            return None
        sentence = f"Use {' and '.join(read)} in {short(old)} ({where(place)})."
        earlier = self._earlier_crossings
        before = _through(earlier.read_at(place), done) if earlier is not None else frozenset[int]()
        return Cut(sentence, at(place), edits.replaced(old, new), _through(crossings.read_at(place), done), before)

    def _as_written(self, paths: Collection[str], place: Place) -> Iterator[tuple[str, str]]:
        """Paths as a line may write them, each with the path; in a method, `gan.fake` may be called `self.fake`."""
        method = source.method_at(self.meeting.text_of_cell(place.cell), place.line or 0)
        for path in filter(is_code, map(local, paths)):
            yield path, path
            if method is not None and "." in path:
                yield "self." + path.split(".", 1)[1], path

    def _where_made(self) -> Iterator[Cut]:
        made, paths = self.meeting.carrier_place, self.meeting.border_names
        spot = outer_at(made) if self.meeting.names else at(made)
        lines = self._detached(self._assigned_at(spot, paths) or paths)
        if not lines or made is None or spot is None or not comes_by(self.meeting, spot, made):
            return
        if source.loop_at(self._cell(spot), spot[1]) is not None:
            return  # each pass made one, and the next began from it
        sentence = f"Cut the graph where it was made: {short(lines[0])} after In[{spot[0]}], line {spot[1]}."
        gone, earlier = _through(self._crossings().behind(spot), paths), self._earlier_crossings
        before = _through(earlier.behind(spot), paths) if earlier is not None else frozenset[int]()
        edit = edits.after(self._cell(spot), spot[1], lines)
        yield Cut(sentence, spot, edit, gone, before, self._detaching.sure(paths))

    def _assigned_at(self, spot: fitting.Spot | None, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Of several paths to one tensor those that the line assigns which made it: the others got it from these."""
        found = source.statements_at(self._cell(spot), spot[1]) if spot is not None else []
        assigned = set(source.targets(found[-1])) if found else set[str]()
        return tuple(path for path in paths if local(path) in assigned)

    # what both need

    def _detached(self, paths: tuple[str, ...]) -> list[str]:
        """The statements that cut the graph at these tensors."""
        return self._detaching.lines(paths)

    @cached_property
    def _detaching(self) -> detaching.Detaching:
        meeting = self.meeting
        cells = [run.source for run in meeting.record.runs.values()]
        known = [graph for graph in (meeting.earlier.graph, meeting.graph) if graph is not None]
        owners = [owner for graph in known for owner in graph.owners]
        return detaching.Detaching(cells, owners)

    def _crossings(self, anew: Collection[str] = ()) -> Crossings:
        """What the later call's own part leads to."""
        return Crossings(self.meeting, self.meeting.graph, self.meeting.new, anew)

    @cached_property
    def _earlier_crossings(self) -> Crossings | None:
        """What the earlier call ran into, on the graph as it was then."""
        earlier = self.meeting.earlier
        if earlier.graph is None:
            return None
        return Crossings(self.meeting, earlier.graph, reachable(earlier.graph, (root.node for root in earlier.roots)))

    def _cell(self, spot: fitting.Spot | None) -> str:
        return self.meeting.text_of_cell(spot[0]) if spot is not None else ""


def _in_what_was_given(cell: str, line: int, lines: list[str]) -> list[str]:
    """``queue[:] = …`` for ``queue = …``, of a list or dict that a function was given: its caller has it, too."""
    found = source.function_at(cell, line)
    known = found[1].args if found is not None else ast.arguments([], [], None, [], [], None, [])
    given = {one.arg for one in (*known.posonlyargs, *known.args, *known.kwonlyargs)}
    return [_in_place(text) if text.split(" = ")[0] in given else text for text in lines]


def _in_place(line: str) -> str:
    """A line that gives a name a new list or dict, as one that fills the old."""
    line = re.sub(r"^(\w+) = (?=\[)", r"\1[:] = ", line)
    return re.sub(r"^(\w+) = (\{.*\})$", r"\1.update(\2)", line)


def after_call(meeting: Meeting, call: BackwardCall, paths: tuple[str, ...]) -> fitting.Spot | None:
    """The line after which a carrier can be cut between passes: of the call, in the function that loops, or else
    of the cell. None: of another function, which cannot see the carrier."""
    frames = {path.split(":", 1)[0] for path in paths if ":" in path}
    place = call.place
    cell = meeting.text_of_cell(place.cell)
    here = source.function_at(cell, place.line) if place.line is not None else None
    if here is None:
        return outer_at(place)
    if here[1].name in frames:
        return at(place)
    if not meeting.loops_in_function:
        return outer_at(place)
    assigns = {name for statement in ast.walk(here[1]) if isinstance(statement, ast.Global) for name in statement.names}
    seen = all(not path.isidentifier() or path in assigns for path in paths)
    return at(place) if seen and not frames else None


def _is_in_method(path: str, written: str) -> bool:
    """Whether a method may write a path like this: `self.h` for `net.h`."""
    return written.startswith("self.") and path.endswith(written[len("self") :])


def _through(crossings: Iterable[Crossing], paths: Collection[str]) -> frozenset[int]:
    """The edges that are gone once these tensors are detached: those of tensors that are reached by no other name."""
    gone = set(map(local, paths))
    return frozenset(one.edge for one in crossings if one.names <= gone)
