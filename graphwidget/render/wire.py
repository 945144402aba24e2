"""One JSON text per picture: what the front end decodes.

Columns instead of objects, every text once in a string table, ascending numbers as differences,
states as one digit each: about 25 bytes a node, and the page parses it without making an object per
node. `SCHEMA` changes whenever a reader of the old form would go wrong.

A `Base` is a full message together with what is needed to say later what changed since: where the
graph's structure is the same, `delta` sends the new states only.

Texts are ASCII in the message (JSON escapes the rest), so that a source line with a broken surrogate
cannot stop it.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import sub
from typing import Any

from graphwidget.model import (
    BackwardCall,
    Drawing,
    Event,
    Finding,
    Fix,
    Place,
    SlotState,
    Snapshot,
    Storage,
    TensorRef,
)
from graphwidget.render.words import op_name, place_text, type_text

__all__ = ["MAX_CALLS", "MAX_EVENTS", "SCHEMA", "Base", "OfferedRoot", "delta", "encode", "offer"]

SCHEMA = 1

# A loop of a thousand iterations makes a thousand calls and events; the page gets the newest ones, and
# every call that something on the page refers to.
MAX_CALLS = 200
MAX_EVENTS = 400
# Engine order is for showing slots empty one after the other, which takes at most a second.
MAX_EXECUTED = 2000

_DIGITS = bytes.maketrans(bytes(range(10)), b"0123456789")


@dataclass(frozen=True, slots=True)
class OfferedRoot:
    """A root as the page may name it: `id` is opaque, `order` picks its hue and stroke style.

    `cells` are the execution counts that Rebuild would run again; None: unknown, Rebuild is off.
    """

    id: int
    ref: TensorRef
    order: int
    cells: tuple[int, ...] | None = None


def offer(snapshot: Snapshot) -> tuple[OfferedRoot, ...]:
    """The snapshot's roots numbered as they come: for pictures that nobody can click."""
    return tuple(OfferedRoot(i, ref, i) for i, ref in enumerate(snapshot.roots))


class _Strings:
    """The string table while a message is written."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.index = {text: i for i, text in enumerate(known)}

    def __call__(self, text: str | None) -> int:
        return -1 if text is None else self.index.setdefault(text, len(self.index))

    def many(self, texts: Iterable[str | None]) -> list[int]:
        return [self(text) for text in texts]

    def since(self, known: int) -> list[str]:
        return list(islice(self.index, known, None))


@dataclass(frozen=True)
class Base:
    """A full message that deltas can refer to."""

    text: str
    serial: int
    drawing: Drawing
    roots: tuple[OfferedRoot, ...]
    strings: tuple[str, ...]

    @classmethod
    def of(
        cls, drawing: Drawing, serial: int, roots: Sequence[OfferedRoot] | None = None, *, off: bool = False
    ) -> Base:
        """Encode everything; `off`: the tracker is switched off."""
        offered = offer(drawing.snapshot) if roots is None else tuple(roots)
        strings = _Strings()
        body = _graph(drawing.snapshot, strings)
        body["roots"] = [_root(root, drawing.snapshot, strings) for root in offered]
        body |= _story(drawing, strings, off)
        body["torch"] = strings(drawing.torch)
        # The table is complete only now.
        head = {"schema": SCHEMA, "serial": serial, "strings": list(strings.index)}
        return cls(_dump(head | body), serial, drawing, offered, tuple(strings.index))


def encode(drawing: Drawing, serial: int = 0, roots: Sequence[OfferedRoot] | None = None) -> str:
    """The whole picture as JSON text.

    Parameters
    ----------
    drawing
        What to show.
    serial
        Number of this message; grows from message to message of one view.
    roots
        The roots with the ids under which the page may name them. Default: as `offer` numbers them.
    """
    return Base.of(drawing, serial, roots).text


def delta(
    drawing: Drawing,
    base: Base,
    serial: int | None = None,
    roots: Sequence[OfferedRoot] | None = None,
    *,
    off: bool = False,
) -> str | None:
    """What changed since `base` as JSON text; None where the structure did and a new base is needed."""
    new, old = drawing.snapshot, base.drawing.snapshot
    offered = offer(new) if roots is None else tuple(roots)
    if offered != base.roots or not _same_structure(new, old) or not _same_memory(new, old):
        return None
    strings = _Strings(base.strings)
    body = _story(drawing, strings, off)
    body["slotState"] = _state_changes(old.slot_state, new.slot_state)
    body["slotFreedBy"] = _freed_runs(new, old)
    body["leaves"] = _leaves(new, strings)
    head = {
        "schema": SCHEMA,
        "base": base.serial,
        "serial": base.serial + 1 if serial is None else serial,
        "strings": strings.since(len(base.strings)),
    }
    return _dump(head | body)


class _Json(str):
    """Text that is JSON already: long columns are written directly, without a list per row in between."""


def _dump(message: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        return value if isinstance(value, _Json) else json.dumps(value, separators=(",", ":"))

    return "{" + ",".join(f'"{key}":{text(value)}' for key, value in message.items()) + "}"


def _row(items: Iterable[object]) -> _Json:
    """A JSON list of numbers, or of what is JSON already."""
    return _Json(f"[{','.join(map(str, items))}]")


# -- the graph -----------------------------------------------------------------------------------


def _graph(snapshot: Snapshot, strings: _Strings) -> dict[str, Any]:
    names = strings.many(map(op_name, snapshot.names))
    slot_names = strings.many(snapshot.slot_names)
    return {
        "n": len(snapshot),
        "uid": _differences(snapshot.uid),
        "name": _row([names[i] for i in snapshot.name]),
        "seq": _differences(snapshot.seq),
        "kind": _digits(snapshot.kind),
        "ghost": _digits(snapshot.ghost) if any(snapshot.ghost) else "",
        "place": _row(snapshot.place),
        "places": [_place(place, strings) for place in snapshot.places],
        "module": _row(snapshot.module),
        "modules": [[strings(m.path), strings(m.class_name), m.call] for m in snapshot.modules],
        "edgeCount": _counts(snapshot.edge_start),
        "edgeTo": _relative_edges(snapshot),
        "edgeNr": [[edge, nr] for edge, nr in enumerate(snapshot.edge_nr) if nr],
        "slotCount": _counts(snapshot.slot_start),
        "slotName": _row([slot_names[i] for i in snapshot.slot_name]),
        "slotState": _digits(snapshot.slot_state),
        "slotType": _slot_types(snapshot, strings),
        "slotBytes": _row(snapshot.slot_bytes),
        "slotStorage": _row(snapshot.slot_storage),
        "slotFreedBy": _freed_runs(snapshot),
        "storages": _row([_storage(storage, strings) for storage in snapshot.storages]),
        "leaves": _leaves(snapshot, strings),
        "owners": [[o.node, o.output_nr, strings(o.path), strings(o.kind)] for o in snapshot.owners],
        "notes": strings.many(snapshot.notes),
    }


def _storage(storage: Storage, strings: _Strings) -> str:
    owners = _row(strings.many(storage.owners)) if storage.owners else "[]"
    return f"[{storage.bytes},{owners}]"


def _differences(column: array[int]) -> _Json:
    """First value, then each value minus the one before."""
    return _row(map(sub, column, chain((0,), column)))


def _counts(starts: array[int]) -> _Json:
    return _row(map(sub, islice(starts, 1, None), starts))


def _relative_edges(snapshot: Snapshot) -> _Json:
    start, to = snapshot.edge_start, snapshot.edge_to
    return _row([to[e] - i for i in range(len(snapshot)) for e in range(start[i], start[i + 1])])


def _digits(column: bytearray) -> str:
    return column.translate(_DIGITS).decode("ascii")


def _slot_types(snapshot: Snapshot, strings: _Strings) -> _Json:
    def name(dtype: int, shape: int) -> int:
        known = snapshot.dtypes[dtype] if dtype >= 0 else None
        return strings(type_text(known, snapshot.shapes[shape] if shape >= 0 else None) or None)

    pairs = list(zip(snapshot.slot_dtype, snapshot.slot_shape))
    index = {pair: name(*pair) for pair in dict.fromkeys(pairs)}
    return _row([index[pair] for pair in pairs])


def _place(place: Place, strings: _Strings) -> list[int | None]:
    return [
        place.cell,
        place.line,
        strings(place.source),
        place.outer_cell,
        place.outer_line,
        strings(place.outer_source),
        place.iteration,
        strings(place.cell_id),
        place.run,
    ]


def _leaves(snapshot: Snapshot, strings: _Strings) -> list[list[Any]]:
    return [
        [node, strings.many(leaf.paths), strings(type_text(leaf.dtype, leaf.shape)), int(leaf.has_grad), leaf.bytes]
        for node, leaf in snapshot.leaves.items()
    ]


def _root(root: OfferedRoot, snapshot: Snapshot, strings: _Strings) -> dict[str, Any]:
    ref = root.ref
    return {
        "id": root.id,
        "path": strings(ref.path),
        "node": ref.node,
        "nr": ref.output_nr,
        "type": strings(type_text(ref.dtype, ref.shape)),
        "scalar": ref.numel == 1,
        "alive": _is_alive(ref, snapshot),
        "order": root.order,
        "cells": None if root.cells is None else list(root.cells),
    }


def _is_alive(ref: TensorRef, snapshot: Snapshot) -> bool:
    """A root without a name cannot be reached from Python any more, nor can one whose node has died."""
    return ref.path is not None and not (ref.node >= 0 and snapshot.ghost[ref.node])


# -- what happened ---------------------------------------------------------------------------------


def _story(drawing: Drawing, strings: _Strings, off: bool) -> dict[str, Any]:
    """Everything but the graph: small, and sent anew each time."""
    calls = _shown_calls(drawing)
    executed = _shown_orders(calls)
    return {
        "calls": [_call(call, strings, executed) for call in calls],
        "boundary": [[old, new, strings(path)] for old, new, path in _boundary(drawing)],
        "events": [_event(event, strings) for event in drawing.events[-MAX_EVENTS:]],
        "event": drawing.current_event,
        "findings": [_finding(finding, strings) for finding in drawing.findings],
        "held": drawing.snapshot.held_bytes(),
        "nodes": len(drawing.snapshot) - sum(drawing.snapshot.ghost),
        "status": _status(drawing, strings, off),
    }


def _shown_calls(drawing: Drawing) -> list[BackwardCall]:
    """The newest calls, and the older ones that slots, findings or those calls refer to."""
    calls = drawing.calls
    if len(calls) <= MAX_CALLS:
        return list(calls)
    newest = calls[-MAX_CALLS:]
    wanted = {n for n in set(drawing.snapshot.slot_freed_by) if n >= 0}
    wanted |= {n for f in drawing.findings for n in (f.call, f.freed_by) if n is not None}
    wanted |= {n for c in newest for n in (c.freed_by, c.same_as) if n is not None}
    return [call for call in calls[:-MAX_CALLS] if call.n in wanted] + list(newest)


def _shown_orders(calls: Sequence[BackwardCall]) -> set[int]:
    """The calls (by n) whose engine order is sent: the newest ones, as far as the budget goes."""
    left = MAX_EXECUTED
    shown = set()
    for call in reversed(calls):
        left -= len(call.executed)
        if left < 0:
            break
        if call.same_as is None and len(call.executed) == call.executed_count:
            shown.add(call.n)
    return shown


def _call(call: BackwardCall, strings: _Strings, with_order: set[int]) -> dict[str, Any]:
    place = call.place
    graph = call.graph
    return {
        "n": call.n,
        "cell": place.cell,
        "line": place.line,
        "outerCell": place.outer_cell,
        "outerLine": place.outer_line,
        "iteration": place.iteration,
        "source": strings(place.source),
        "api": call.api,
        "retain": call.retain_graph,
        "create": call.create_graph,
        "roots": strings.many(ref.path for ref in call.roots),
        "rootUids": [graph.uid[r.node] for r in call.roots if 0 <= r.node < len(graph)] if graph else [],
        "result": call.result,
        "error": strings(call.error or ""),
        "failedUid": call.failed_uid,
        "freedBy": call.freed_by,
        "executed": call.executed.tolist() if call.n in with_order else None,
        "executedCount": call.executed_count,
        "freedSlots": call.freed_slots,
        "freedBytes": call.freed_bytes,
        "carriers": strings.many(call.carriers),
        "forecast": strings(call.forecast),
        "sameAs": call.same_as,
    }


def _boundary(drawing: Drawing) -> list[tuple[int, int, str | None]]:
    """Where the last failing call's new part meets what an earlier call freed: (old uid, new uid, carrier)."""
    failed = next((call for call in reversed(drawing.calls) if call.result == "raised"), None)
    if failed is None or failed.freed_by is None:
        return []
    snapshot = drawing.snapshot
    old = {snapshot.index_of[uid]: uid for uid in failed.boundary if uid in snapshot.index_of}
    if not old:
        return []
    earlier = next((call for call in drawing.calls if call.n == failed.freed_by), None)
    newest = earlier.newest_seq if earlier else -1
    found = []
    for index in range(len(snapshot)):
        if snapshot.seq[index] >= newest and index not in old:
            for target in dict.fromkeys(snapshot.next(index)):
                if target in old:
                    found.append((old[target], snapshot.uid[index], _carrier(failed, snapshot, target)))
    return found


def _carrier(call: BackwardCall, snapshot: Snapshot, old: int) -> str | None:
    """The carrier that names `old`; a single carrier needs no such proof."""
    labels = snapshot.labels.get(old, ())
    named = next((path for path in call.carriers if path in labels), None)
    return named or (call.carriers[0] if len(call.carriers) == 1 else None)


def _event(event: Event, strings: _Strings) -> dict[str, Any]:
    return {
        "id": event.id,
        "kind": event.kind,
        "cell": event.cell,
        "call": event.call,
        "iteration": event.iteration,
        "label": strings(event.label),
        "ok": event.ok,
        "held": event.held_bytes,
        "nodes": event.nodes,
        "kept": event.snapshot is not None,
    }


def _finding(finding: Finding, strings: _Strings) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "headline": strings(finding.headline),
        "text": strings(finding.text),
        "call": finding.call,
        "node": strings(finding.node),
        "uid": finding.node_uid,
        "carriers": strings.many(finding.carriers),
        "freedBy": finding.freed_by,
        "path": strings.many(finding.path),
        "uids": list(finding.uids),
        "bytes": finding.bytes,
        "fixes": [_fix(fix, strings) for fix in finding.fixes],
    }


def _fix(fix: Fix, strings: _Strings) -> dict[str, Any]:
    return {
        "id": strings(fix.id),
        "text": strings(fix.text),
        "verified": fix.verified,
        "at": None if fix.at is None else list(fix.at),
        "price": strings(fix.price),
        "edit": strings.many(fix.edit),
    }


def _status(drawing: Drawing, strings: _Strings, off: bool) -> dict[str, Any]:
    last = drawing.events[-1] if drawing.events else None
    cell = last.cell if last else None
    if off:
        return {"text": strings("tracking is off"), "state": "off", "cell": cell}
    if drawing.busy is not None:
        return {"text": strings(drawing.busy), "state": "busy", "cell": cell}
    raised = _last_raised(drawing)
    if raised is not None:
        where = place_text(raised.place)
        text = f"raised in {where}" if where else "raised"
        return {"text": strings(text), "state": "raised", "cell": raised.place.outer_cell or raised.place.cell}
    return {"text": strings("idle"), "state": "idle", "cell": cell}


def _last_raised(drawing: Drawing) -> BackwardCall | None:
    """The newest call if it raised, unless a cell has run without it since."""
    if not drawing.calls or drawing.calls[-1].result != "raised":
        return None
    call = drawing.calls[-1]
    at = next((i for i in range(len(drawing.events) - 1, -1, -1) if drawing.events[i].call == call.n), None)
    if at is not None and sum(event.kind == "cell" for event in drawing.events[at + 1 :]) > 1:
        return None
    return call


# -- what changed ------------------------------------------------------------------------------------

_STRUCTURE = (
    "uid name seq kind ghost place module edge_start edge_to edge_nr slot_start slot_name "
    "names slot_names places modules owners notes"
).split()


def _same_structure(new: Snapshot, old: Snapshot) -> bool:
    if new is old:
        return True
    return all((a := getattr(new, column)) is (b := getattr(old, column)) or bool(a == b) for column in _STRUCTURE)


def _same_memory(new: Snapshot, old: Snapshot) -> bool:
    """Whether every slot that still has memory shows the same memory; a freed slot keeps its last known size."""
    if new is old:
        return True
    for slot, state in enumerate(new.slot_state):
        if state == SlotState.FREED:
            continue
        if new.slot_bytes[slot] != old.slot_bytes[slot]:
            return False
        mine, before = new.slot_storage[slot], old.slot_storage[slot]
        if (mine < 0) != (before < 0):
            return False
        if mine >= 0 and not _same_storage(new.storages[mine], old.storages[before]):
            return False
    return True


def _same_storage(new: Storage, old: Storage) -> bool:
    """Versions may differ: what a new version means for a slot is that slot's state."""
    return new is old or (new.key == old.key and new.bytes == old.bytes and new.owners == old.owners)


def _state_changes(old: bytearray, new: bytearray) -> str | _Json:
    """Rows [first slot, state, slots, state before], or all states as digits where that is shorter.

    A row speaks of those of its slots that were in the state before: what lies between them costs nothing.
    """
    if old == new:
        return _row(())
    rows = []
    for was in {before for before, now in zip(old, new) if before != now}:
        among = [slot for slot, before in enumerate(old) if before == was]
        rows += [f"[{first},{now},{count},{was}]" for first, now, count in _runs(among, new) if now != was]
    written = _row(rows)
    return written if len(written) <= len(new) else _digits(new)


def _freed_runs(new: Snapshot, old: Snapshot | None = None) -> _Json:
    """Rows [first slot, call, slots]: which call freed a slot. A row speaks of freed slots only."""
    freed_by = new.slot_freed_by
    if old is not None and freed_by == old.slot_freed_by:
        return _row(())
    freed = (slot for slot, state in enumerate(new.slot_state) if state == SlotState.FREED)
    return _row(f"[{first},{n},{count}]" for first, n, count in _runs(freed, freed_by))


def _runs(slots: Iterable[int], column: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Stretches of `slots` with the same value in a column: first slot, value, slots from the first to the last."""
    for value, run in groupby(slots, column.__getitem__):
        found = list(run)
        yield found[0], value, found[-1] - found[0] + 1
