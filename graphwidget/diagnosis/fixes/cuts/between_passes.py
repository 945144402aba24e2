"""Cuts between two passes: after a call, before the next pass starts from what this one made."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.fixes.cuts.at_key import stored_by_key
from graphwidget.diagnosis.fixes.cuts.at_state import before_use
from graphwidget.diagnosis.fixes.cuts.at_store import stored_after_call, stored_before_call
from graphwidget.diagnosis.fixes.cuts.at_write import written_after_call
from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext, edges_of
from graphwidget.diagnosis.fixes.cuts.state import uses
from graphwidget.diagnosis.reuse.lines_between import runs_between
from graphwidget.diagnosis.reuse.named_edges import NamedEdge
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.source.tensor_or_not import when_tensor
from graphwidget.diagnosis.wording import at, lines_of, outer_at, short, source_line, spoken
from graphwidget.model import BackwardCall, TextEdit

__all__ = ["after_call", "between_passes"]


def between_passes(context: CuttingContext) -> Iterator[Cut]:
    """After a call, cut what the next pass starts from: first the carriers, then all tensors that it uses."""
    yield from written_after_call(context)
    setting, reuse = context.setting, context.reuse
    paths = setting.lasting(context.paths, None)
    place = after_call(setting, reuse.later if setting.repeated else reuse.earlier, paths)
    place = place if place is not None and runs_between(setting, place) else None
    carried = tuple(context.later_edges(setting.forgets(place)).carried())
    if place is not None:
        paths = setting.lasting(paths, place)
    every = dict.fromkeys((*paths, *sorted(name for one in carried for name in one.names)))
    if place is not None:
        yield from _handed_over(context, place, carried)
        yield from _kept_detached(context, place, carried)
    yield from stored_by_key(context, paths, carried)
    state = list(uses(context))
    yield from stored_after_call(context, state)
    several = len(set(map(spoken, paths))) > 1  # a variable of a function is one also in a function inside it
    if several and len(set(map(source.last_name, paths))) == 1 and not all(p.endswith("]") for p in paths):
        yield from before_use(context, state)  # one attribute of several objects: one line for all of them
    for some in dict.fromkeys((paths, tuple(every))):
        lines = context.detaching.lines(some)
        if lines and place is not None:
            lines = _as_a_method_writes(context, lines, some, place)
            lines = _in_shared_containers(context.text(place), place[1], lines)
            lines = [_of_a_tensor(context, place, line) for line in lines]
            where_to = f"In[{place[0]}], line {place[1]}"
            edits = text_edit.insert_after(place[0], context.text(place), place[1], lines)
            sentence = f"Cut the graph between passes: {', '.join(map(short, lines))} after {where_to}."
            gone = _cut_after_call(context, [one for one in carried if not _is_made_behind(context, place, one)], some)
            yield Cut(sentence, place, edits, gone, sure=context.detaching.sure(some))
    yield from stored_before_call(context, state)
    yield from before_use(context, state)


def _cut_after_call(context: CuttingContext, carried: Collection[NamedEdge], paths: Collection[str]) -> frozenset[int]:
    """The edges that detaching these paths right after a call removes.

    A name that a tensor gets later leads to one without a graph only if all names that it had then were detached.
    """
    before, now, gone = context.reuse.earlier.graph, context.reuse.graph, set(map(local, paths))
    then: dict[int, set[str]] = {}
    for owner in before.owners if before is not None else ():
        index = now.index_of.get(before.uid[owner.node]) if before is not None else None
        if index is not None and owner.kind != "out":
            then.setdefault(index, set()).add(local(owner.path))
    found = set[int]()
    for one in carried:
        names = then.get(one.tensor, one.names)
        if (one.names if one.names <= names else names) <= gone:
            found.add(one.edge)
    return frozenset(found)


def _is_made_behind(context: CuttingContext, place: Spot, carried: NamedEdge) -> bool:
    """Whether a line made a tensor that stands behind a line of its function: what that line detaches comes before."""
    made = context.reuse.graph.place_of(carried.tensor)
    spots = lines_of(made) if made is not None else []
    # By its text: a cell that ran again has a new number.
    here, function = context.text(place), context.setting.function_of(place)[1]
    return any(
        one[1] > place[1] and context.text(one) == here and context.setting.function_of(one)[1] == function
        for one in spots
    )


def _handed_over(context: CuttingContext, place: Spot, carried: Collection[NamedEdge]) -> Iterator[Cut]:
    """The lines that hand a tensor over to the next pass, ``prev = out``, hand it over detached."""
    cell = context.text(place)
    loop = source.loop_at(cell, place[1])
    names = {name for one in carried for name in one.names}
    edits: list[TextEdit] = []
    written: list[str] = []
    gone: set[str] = set()
    first = 0
    for statement, target, value in source.hand_overs(loop, place[1]) if loop is not None else ():
        if target in names:
            edits += text_edit.insert_behind(place[0], cell, statement, ".detach()")
            written.append(short(f"{target} = {value}.detach()"))
            first = first or statement.lineno
            gone |= {target, value}
    if edits:
        sentence = f"Hand it over detached: {', '.join(written)} (In[{place[0]}], line {first})."
        yield Cut(sentence, (place[0], first), tuple(edits), edges_of(carried, gone))


def _kept_detached(context: CuttingContext, place: Spot, carried: Collection[NamedEdge]) -> Iterator[Cut]:
    """The line of the loop that puts the tensor into a container puts it in detached: ``temp.append(h.detach())``.

    Only if no later line of the pass, up to the call, reads the container: what it reads would have no graph.
    """
    cell, paths = context.text(place), list(map(local, context.paths))
    holders = {path.split("[", 1)[0] for path in paths}
    loop = source.loop_at(cell, place[1])
    if loop is None or len(holders) != 1 or not all("[" in path for path in paths):
        return
    (holder,) = holders
    spots = containers.detached_in(place[0], cell, holder, {path[len(holder) :] for path in paths})
    if not spots or not all(loop.lineno < line <= (loop.end_lineno or 0) for line, _ in spots):
        return
    last, word = min(line for line, _ in spots), holder.rsplit(".", 1)[-1]
    if any(word in source.words_in(s) for s in source.between(cell, last, place[1])):
        return
    shown = " and ".join(short(text_edit.new_text(cell, edits)) for _, edits in spots)
    gone = {name for one in carried for name in one.names if name.startswith(f"{holder}[")}
    sentence = f"Keep it detached: {shown} (In[{place[0]}], line {last})."
    every = tuple(edit for _, edits in spots for edit in edits)
    yield Cut(sentence, (place[0], last), every, edges_of(carried, {*paths, *gone}))


def _as_a_method_writes(context: CuttingContext, lines: list[str], paths: Collection[str], place: Spot) -> list[str]:
    """``self.state`` for ``trainer.state`` in a method of the class that sets it, if it made it or has one object."""
    cell, made = context.text(place), context.reuse.carrier_place
    owner = (source.function_at(cell, place[1]) or (None,))[0]
    if owner is None or source.method_at(cell, place[1]) is None:
        return lines
    made_here = made is not None and made.cell == place[0]
    made_here = made_here and owner.lineno <= (made.line if made and made.line else 0) <= (owner.end_lineno or 0)
    for path in map(local, paths):
        root, _, rest = path.partition(".")
        name = re.split(r"\W", rest)[0]
        if not made_here and not _is_only_object(context, owner.name, root):
            continue
        if any(f"self.{name}" in source.targets(s) for s in ast.walk(owner) if isinstance(s, ast.stmt)):
            lines = [re.sub(rf"\b{re.escape(root)}\.{name}\b", f"self.{name}", line) for line in lines]
    return lines


def _is_only_object(context: CuttingContext, class_name: str, variable: str) -> bool:
    """Whether the program makes one object of a class, and a variable is that."""
    making = [
        node
        for text in context.cells.values()
        for node in source.nodes_of(text)
        if isinstance(node, ast.Call) and source.last_name(ast.unparse(node.func)) == class_name
    ]
    assigned = [made for text in context.cells.values() for made in source.assignments(text, variable)]
    return len(making) == 1 and [source.given(one) for one in assigned] == making


def _of_a_tensor(context: CuttingContext, place: Spot, line: str) -> str:
    """A line that detaches, with a condition where what it detaches may be None in the first pass."""
    path = line.partition(" = ")[0]
    if " " in path or _was_a_tensor(context, path):
        return line
    condition = when_tensor(context.cells, place, path)
    return f"if {condition}: {line}" if condition else line


def _was_a_tensor(context: CuttingContext, path: str) -> bool:
    """Whether a path led to a tensor with a graph when each earlier call of the line began."""
    later = context.reuse.later
    calls = (call for call in context.reuse.record.calls if call.n < later.n)
    graphs = [call.graph for call in calls if source_line(call.place) == source_line(later.place)]
    return bool(graphs) and all(
        graph is not None and any(local(one.path).startswith(path) for one in graph.owners) for graph in graphs
    )


def _in_shared_containers(cell: str, line: int, lines: list[str]) -> list[str]:
    """``queue[:] = …`` for ``queue = …``, of a list or dict that others have, too: the caller, or an object."""
    shared = source.shared(cell, line)
    return [_in_place(text) if text.split(" = ")[0] in shared else text for text in lines]


def _in_place(line: str) -> str:
    """A line that gives a name a new list or dict, as one that fills the old."""
    line = re.sub(r"^(\w+) = (?=\[)", r"\1[:] = ", line)
    return re.sub(r"^(\w+) = (\{.*\})$", r"\1.update(\2)", line)


def after_call(setting: Setting, call: BackwardCall, paths: tuple[str, ...]) -> Spot | None:
    """The line after which a carrier can be cut between passes.

    It is the line of the call, in the function that loops, or the line of the function that called it, or else the line
    of the cell. None: the call is in another function, which cannot name the carrier.
    """
    frames = {path.split(":", 1)[0] for path in paths if ":" in path}
    place = call.place
    cell = setting.text_of_cell(place.cell)
    here = source.function_at(cell, place.line) if place.line is not None else None
    if here is None:
        return outer_at(place)
    if here[1].name in frames:
        return at(place)
    for caller in reversed(place.stack):
        if (caller.function or "").rpartition(".")[2] in frames:
            return at(caller)
    if not setting.loops_in_function:
        return outer_at(place)
    assigns = {name for statement in ast.walk(here[1]) if isinstance(statement, ast.Global) for name in statement.names}
    seen = all(not path.isidentifier() or path in assigns for path in paths)
    return at(place) if seen and not frames else None
