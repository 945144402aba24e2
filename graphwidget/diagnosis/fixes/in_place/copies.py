"""Copies that a write in place leaves alone: of what a node saves, and of a tensor that has got a second name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from graphwidget.diagnosis.fixes.second_backward.case import simulate
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place.statements import reads_what_it_writes
from graphwidget.diagnosis.wording import at, lines_of, short, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, Fix, Record, SlotState, Snapshot, TextEdit, Write
from graphwidget.model.views import VIEWS

__all__ = ["lines_computing", "read_a_copy", "saved_behind", "savers", "second_name"]

_SEVERAL_VIEWS = ("split", "unbind", "chunk", "unsafesplit", "tensorsplit", "hsplit", "vsplit", "dsplit", "copyslices")


def read_a_copy(record: Record, call: BackwardCall, graph: Snapshot, write: Write, tensor: str | None) -> Fix | None:
    """Read a copy of a leaf that the forward pass itself modifies, after a node has saved it.

    ``nn.Embedding(…, max_norm=1.0)`` shortens rows of its weight in each call: no write that could be moved.
    """
    reached = reachable(graph, (root.node for root in call.roots))
    made = (i for i in reached if graph.seq[i] >= write.number and at(write.place) in lines_of(graph.place_of(i)))
    if write.optimizer or tensor is None or not any(True for _ in made):
        return None
    found = savers(call, graph, write)
    edits: dict[Spot, Edits] = {}
    for index in found:
        place = graph.place_of(index)
        for spot in reversed(lines_of(place)):
            own = tuple(_cloned(Cells.of(record).text(spot[0]), spot, tensor))
            if own:
                edits[spot] = own
                break
        else:
            return None
    states = bytearray(graph.slot_state)
    for index in found:
        for slot in graph.slots_of(index):
            states[slot] = SlotState.HELD if states[slot] == SlotState.STALE else states[slot]
    first = min(edits, default=None)
    if first is None:
        return None
    by = f"{short(write.by)} ({where(write.place)})"
    line = short(syntax.line_text(Cells.of(record).text(first[0]), first[1]))
    return Fix(
        "clone_before_inplace",
        f"Read a copy of `{tensor}` in {line} (In[{first[0]}], line {first[1]}), which {by} leaves as it is.",
        simulate(replace(graph, slot_state=states), call).ok is True,
        first,
        "One more tensor of that size.",
        edits=tuple(edit for own in edits.values() for edit in own),
    )


def _cloned(text: str, spot: Spot, tensor: str) -> Iterator[TextEdit]:
    """Edits after which a line reads a copy of a tensor, by the name that the line has for it."""
    for statement in syntax.statements_at(text, spot[1])[-1:]:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                path = ast.unparse(node)
                if path == tensor or (path.startswith("self.") and tensor.endswith(path[len("self") :])):
                    yield from text_edit.insert_behind(spot[0], text, node, ".clone()")


def second_name(record: Record, write: Write, name: str | None) -> Iterator[tuple[str, Spot, Edits]]:
    """Make the second name of a tensor that of a copy: ``out = x`` before ``out[0] = f(x)``."""
    cell, spot = Cells.of(record).text(write.place.cell), at(write.place)
    if name is None or spot is None or not name.isidentifier() or reads_what_it_writes(write.by):
        return
    made = syntax.bindings(cell, name, spot[1])
    function = syntax.function_at(cell, spot[1])
    if not made or not isinstance(made[-1], ast.Assign) or not isinstance(made[-1].value, ast.Name):
        return
    given, other = made[-1], made[-1].value
    if syntax.function_at(cell, given.lineno) != function or given in syntax.statements_at(cell, spot[1]):
        return
    loops = syntax.loops_around(cell, spot[1])
    last = max([spot[1], *(loop.end_lineno or 0 for loop in loops if loop.lineno > given.lineno)])
    if any(name in _read(one) for one in syntax.between(cell, given.lineno, last)):
        return
    copy = f"{name} = {other.id}.clone()"
    sentence = f"`{name}` is a second name of `{other.id}`: write `{copy}` (In[{spot[0]}], line {given.lineno})."
    edits = text_edit.insert_behind(spot[0], cell, other, ".clone()")
    yield sentence, (spot[0], given.lineno), edits


def _read(statement: ast.stmt) -> set[str]:
    """The names that a statement reads, but not those to a part of which it assigns."""
    part = statement.value if isinstance(statement, ast.Assign) else statement
    return syntax.names_in(part) if part is not None else set()


def savers(call: BackwardCall, graph: Snapshot, write: Write) -> set[int]:
    """The nodes that a call reaches and that had saved what a write has modified."""
    inside = reachable(graph, (root.node for root in call.roots))
    stale = [s for i in inside for s in graph.slots_of(i) if graph.slot_state[s] == SlotState.STALE]
    keys = {s: graph.storages.key[graph.slot_storage[s]] for s in stale if graph.slot_storage[s] >= 0}
    return {i for i in inside for s in graph.slots_of(i) if keys.get(s) in write.storages}


def lines_computing(record: Record, call: BackwardCall, graph: Snapshot, write: Write) -> frozenset[Spot]:
    """The lines that computed what a write modifies: new tensors, as the nodes show that had saved them.

    Not lines whose last node is a view's, or that modify something in place.
    """
    cells, last = Cells.of(record), dict[Spot, int]()
    saving = savers(call, graph, write)
    for index in saving.union(*(graph.next(i) for i in saving)):
        for line in filter(None, map(cells.beginning, lines_of(graph.place_of(index)))):
            if line not in last or graph.seq[index] > graph.seq[last[line]]:
                last[line] = index
    lines = {line for line, index in last.items() if not _is_view(graph.name_of(index))}
    return frozenset(lines - {cells.beginning(at(one.place)) for one in record.writes})


def _is_view(node: str) -> bool:
    name = node.split("Backward")[0].lower()
    return name in VIEWS or name.startswith(_SEVERAL_VIEWS)


def saved_behind(call: BackwardCall, graph: Snapshot, write: Write, line: int) -> bool:
    """Whether what a write modifies was saved after a line of its cell, in the same pass.

    Then a copy made in that line would be saved as well.
    """
    there = write.place
    made = [place for i in savers(call, graph, write) if (place := graph.place_of(i)) is not None]
    return any(
        (place.cell, place.run, place.iteration) == (there.cell, there.run, there.iteration)
        and line < (place.line or 0)
        for place in made
    )
