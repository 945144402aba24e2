"""The lines that modified what a node had saved, and the graph as it would be without some of these writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from graphwidget.diagnosis.reuse.temporaries import writes_to_temporary
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.pytorch.custom_functions import marks_dirty
from graphwidget.diagnosis.wording import lasting_name, lines_of
from graphwidget.model import Kind, NodeFacts, Place, Record, SlotState, Snapshot, Write


def culprit(record: Record, graph: Snapshot, index: int, n: int) -> tuple[str | None, tuple[Write, ...]]:
    """The user's name of the stale tensor that a node had saved, and the lines that modified it since, in order."""
    slots = [slot for slot in graph.slots_of(index) if graph.slot_state[slot] == SlotState.STALE]
    facts = graph.facts.get(index)
    found: tuple[str | None, tuple[Write, ...]] = (None, ())
    for at in (*(graph.slot_storage[slot] for slot in slots[:1]), *(facts.operands if facts and not slots else ())):
        if at < 0:
            continue
        storage = graph.storages[at]
        since = of_storage(record, graph, index, storage.key, n)
        name = lasting_name(record, storage.owners) if storage.owners else None
        if since and not name:
            position = since[-1].storages.index(storage.key)
            name = since[-1].paths[position] if position < len(since[-1].paths) else None
        found = (name, since)
        if since:
            break
    if graph.kind[index] == Kind.COPY_SLICES and not (facts and facts.operands):
        return _hidden_culprit(record, graph, index, n)
    return found


def _hidden_culprit(record: Record, graph: Snapshot, index: int, n: int) -> tuple[str | None, tuple[Write, ...]]:
    """`culprit` for a write into a view, whose saved tensors are hidden: it is the only tensor modified since."""
    found = _hidden_writes(record, graph, index, n)
    if len(found) != 1:
        return None, ()
    ((key, writes),) = found.items()
    last = writes[-1]
    position = last.storages.index(key)
    return (last.paths[position] if position < len(last.paths) else None), writes


def _hidden_writes(record: Record, graph: Snapshot, index: int, n: int) -> dict[int, tuple[Write, ...]]:
    """Writes since a write into a view, by storage: each of these may be what it saved.

    The write itself counts where it reads what it writes to: ``y[1] *= y[2]`` saves a part of what it modifies.
    """
    made, cells = graph.place_of(index), Cells.of(record)
    since = [w for w in record.writes if w.after_calls <= n and _since(w, made, graph.seq[index], cells)]
    if made is not None and not reads_its_target(graph, index):
        since = [w for w in since if not _same_line(w.place, made)]
    keys = dict.fromkeys(key for w in since for key in w.storages)
    return {key: tuple(w for w in since if key in w.storages) for key in keys}


def reads_its_target(graph: Snapshot, index: int) -> bool:
    """Whether an operand of a write into a view is a view of the same tensor. The first edge leads to that tensor."""
    target, *operands = graph.next(index) or (-1,)
    for operand in operands:
        while operand != target and len(following := graph.next(operand)) == 1:
            operand = following[0]
        if operand == target:
            return True
    return False


def of_storage(record: Record, graph: Snapshot, index: int, key: int, n: int) -> tuple[Write, ...]:
    """The writes to a storage before call `n` and after a node had saved it; if none surely was, the last write.

    A write that surely came before the node is left out: then an unrecorded write has modified the tensor. A write that
    made the node came before if the node saved its result: ``y.exp_()``. So did the write of a module whose node is
    older, although both ran on one line; and one in the `forward` of a custom Function, which saves at its end.
    """
    made, seq, cells = graph.place_of(index), graph.seq[index], Cells.of(record)
    slots = [slot for slot in graph.slots_of(index) if graph.slot_storage[slot] >= 0]
    saved = {graph.slot_names[graph.slot_name[s]] for s in slots if graph.storages.key[graph.slot_storage[s]] == key}
    writes = [w for w in record.writes if key in w.storages and w.after_calls <= n]
    if saved == {"result"}:
        writes = [*writes_to_temporary(record, graph, index, key), *writes]
    writes = [w for w in writes if w.inside is None or max(w.made) > seq]
    later = [w for w in writes if _since(w, made, seq, cells)]
    custom = graph.kind[index] == Kind.CUSTOM
    later = [w for at, w in enumerate(later) if not _marked_by_caller(record, w, later[at + 1 :])]
    if (custom or saved == {"result"}) and made is not None:
        later = [w for w in later if graph.seq[index] not in w.made or not _same_line(w.place, made)]
    if custom and made is not None:
        later = [w for w in later if not _called_by(w.place, made)]
    return tuple(later) or tuple(w for w in writes[-1:] if not _before(w, made, seq))


Undone = Callable[[tuple[Write, ...], Place | None], bool]


def without(
    record: Record, graph: Snapshot, n: int, undone: Undone, reached: Collection[int] | None = None
) -> Snapshot:
    """The graph as if some writes had not been made: what only these modified before call `n` is as it was saved.

    Parameters
    ----------
    reached
        Indices of the nodes that the call reaches: the others stay as they are. None: all.
    undone
        Given all writes that modified one saved tensor, in order, and the place of the node that had saved it: whether
        none of them is left.
    """

    def cured(index: int, found: Collection[tuple[Write, ...]]) -> bool:
        return bool(found) and all(writes and undone(writes, graph.place_of(index)) for writes in found)

    def to(index: int, storages: Iterable[int]) -> list[tuple[Write, ...]]:
        return [of_storage(record, graph, index, graph.storages.key[at], n) for at in storages if at >= 0]

    states, reached = bytearray(graph.slot_state), range(len(graph)) if reached is None else reached
    for index in reached:
        for slot in graph.slots_of(index):
            if states[slot] == SlotState.STALE and cured(index, to(index, [graph.slot_storage[slot]])):
                states[slot] = SlotState.HELD
    facts: dict[int, NodeFacts] = dict(graph.facts)
    for index, fact in graph.facts.items():
        if fact.inner_stale is False or index not in reached:
            continue
        found = to(index, fact.operands) or _hidden_writes(record, graph, index, n).values()
        if cured(index, found):
            facts[index] = replace(fact, inner_stale=False)
    return replace(graph, slot_state=states, facts=facts)


def _same_line(write: Place, made: Place) -> bool:
    return (write.run, write.iteration, write.cell, write.line) == (made.run, made.iteration, made.cell, made.line)


def _marked_by_caller(record: Record, write: Write, since: list[Write]) -> bool:
    """Whether a write in a Function's `forward` is for the line that applies it, which then counts as a write, too.

    A Function that says by `mark_dirty` what it writes to does so on purpose: the line that hands it in can do other.
    """
    return any(_is_below(write.place, one.place) for one in since) and marks_dirty(record, write.place)


def _called_by(write: Place, made: Place) -> bool:
    """Whether a line ran while the line that made a node was running."""
    same_pass = (write.run, write.outer_line, write.iteration) == (made.run, made.outer_line, made.iteration)
    return same_pass and _is_below(write, made)


def _is_below(write: Place, line: Place) -> bool:
    """Whether a line stands in what another line called, in whichever pass of a loop."""
    callers = [*(one.spot for one in line.stack), line.spot]
    return len(write.stack) >= len(callers) and [one.spot for one in write.stack][: len(callers)] == callers


def _before(write: Write, made: Place | None, seq: int) -> bool:
    """Whether a write had surely ended when a node was made: it began before, and on another line."""
    if made is None or not 0 <= write.number <= seq:
        return False
    line = (write.place.run, write.place.outer_line, write.place.iteration)
    return line != (made.run, made.outer_line, made.iteration)


def _since(write: Write, made: Place | None, seq: int, cells: Cells) -> bool:
    """Whether a write was later than a node was made: by their numbers, or else as far as their lines show."""
    if 0 <= seq < write.number:
        return True
    if seq >= 0 <= write.number <= max(write.made, default=-1):  # it recorded a node of its own, while its line ran
        return seq <= max(write.made)
    place = write.place
    if made is None or place.run is None or made.run is None:
        return True
    if seq >= 0 <= write.number:  # it began before: the node is older only if the line itself has made it
        return _in_its_line(place, made, cells)
    if place.run != made.run:
        return place.run > made.run
    if place.iteration != made.iteration and _loop_of(cells, place) == _loop_of(cells, made):
        return (place.iteration or 0) > (made.iteration or 0)
    if place.outer_line != made.outer_line:
        return (place.outer_line or 0) > (made.outer_line or 0)
    return place.cell != made.cell or (place.line or 0) >= (made.line or 0)


def _in_its_line(write: Place, made: Place, cells: Cells) -> bool:
    """Whether a node may have been made while the line of a write ran, in it or in what it calls."""
    if (write.run, write.iteration or made.iteration) != (made.run, made.iteration):
        return False
    lines = [cells.beginning(one) for one in lines_of(write)]
    return [cells.beginning(one) for one in lines_of(made)][: len(lines)] == lines


def _loop_of(cells: Cells, place: Place) -> tuple[int, int] | None:
    """The loop whose passes a place counts: that of its outermost line that is in one."""
    found = ((spot[0], cells.loop(spot)) for spot in lines_of(place))
    return next(((cell, loop.lineno) for cell, loop in found if loop is not None), None)
