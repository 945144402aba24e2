"""Modules with ``inplace=True`` that modified a tensor, also one without a name that no line seems to modify.

Between the parts of an `nn.Sequential`, or inside a library's model, tensors have no names in the program. But a node
that such a module made has overwritten its input, and the graph shows which tensor that was.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace

from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import ModuleCall, Record, SlotState, Snapshot, Write

__all__ = ["expression", "makes", "named", "with_modules"]


def with_modules(record: Record, graph: Snapshot) -> Record:
    """The record with the modules of its writes, and with the writes that only the graph shows."""
    if not any(module.inplace for module in graph.modules):
        return record
    made = {
        graph.seq[index]: index
        for index, at in enumerate(graph.module)
        if at >= 0 and graph.modules[at].inplace and graph.seq[index] >= 0
    }
    known: list[Write] = []
    seen: set[int] = set()
    for write in record.writes:
        fresh = [seq for seq in write.made if seq >= write.number]  # not there before the line
        inside = next((graph.module_of(made[seq]) for seq in fresh if seq in made), None)
        known.append(replace(write, inside=inside) if inside is not None else write)
        seen.update(fresh)
    for write in _unseen(record, graph, [index for seq, index in sorted(made.items()) if seq not in seen]):
        later = (at for at, other in enumerate(known) if other.number > write.number)
        known.insert(next(later, len(known)), write)
    return replace(record, writes=tuple(known))


def _unseen(record: Record, graph: Snapshot, indices: Collection[int]) -> Iterator[Write]:
    results = _stale_results(graph)
    for index in indices:
        place, seq = graph.place_of(index), graph.seq[index]
        # Its own result is in the memory of its input. If it saved none: the result of the node before, which is stale.
        key = _result(graph, index)
        before = graph.next(index)
        if key is None and len(before) == 1:
            key = results.get(before[0])
        if key is None or place is None:
            continue
        earlier = sum(call.newest_seq < seq for call in record.calls)
        yield Write(place, place.source, (), (key,), earlier, False, (seq,), seq, graph.module_of(index))


def _stale_results(graph: Snapshot) -> dict[int, int]:
    """Node -> key of the storage of its own result, which it had saved and which has been modified since."""
    found = {}
    for slot, state in enumerate(graph.slot_state):
        if state == SlotState.STALE:
            index = graph.node_with(slot)
            key = _result(graph, index)
            if key is not None:
                found[index] = key
    return found


def _result(graph: Snapshot, index: int) -> int | None:
    """The key of the storage of a node's own result, if it has saved that."""
    for slot in graph.slots_of(index):
        if graph.slot_names[graph.slot_name[slot]] == "result" and graph.slot_storage[slot] >= 0:
            return graph.storages.key[graph.slot_storage[slot]]
    return None


def named(module: ModuleCall) -> str:
    """A module as a sentence names it."""
    name = expression(module)
    return (
        f"`{name}`, a `{module.class_name}` with `inplace=True`"
        if name
        else f"a `{module.class_name}` with `inplace=True`"
    )


def expression(module: ModuleCall) -> str:
    """How the user's code can name a module; empty: it cannot."""
    return module.path if module.named else ""


def makes(line: str, module: ModuleCall | None) -> bool:
    """Whether the module is all that a line makes with arguments, as far as that is known."""
    tree = source.parse(line) if module is not None else None
    if module is None or tree is None:
        return module is None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and any(k.arg == "inplace" for k in n.keywords)]
    return [ast.unparse(one.func).rsplit(".", 1)[-1] for one in calls] == [module.class_name]
