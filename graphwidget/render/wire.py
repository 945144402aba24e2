"""One JSON text per picture: what the front end decodes.

Columns instead of objects, every text once in a string table. A column of numbers is one text: each
number as its difference to the one before, in as many characters as that takes, one from -16 to 15
(`_column`); states are one character each. About 10 bytes a node or edge, and the page reads it in one
pass without making an object per node. `SCHEMA` changes whenever a reader of the old form would go
wrong.

A `Base` is a full message together with what is needed to say later what changed since: where the
graph's structure is the same, `delta` sends the new states only.

Texts are ASCII in the message (JSON escapes the rest), so that a source line with a broken surrogate
cannot stop it.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, compress, groupby, islice
from itertools import count as counting
from operator import attrgetter, sub
from typing import Any, TypeVar

from graphwidget.model import (
    BackwardCall,
    Drawing,
    Event,
    Finding,
    Fix,
    SlotState,
    Snapshot,
    TensorRef,
)
from graphwidget.render.border import boundary
from graphwidget.render.words import count, op_name, ordinal, spot_text, type_text

__all__ = ["MAX_CALLS", "MAX_EVENTS", "SCHEMA", "Base", "OfferedRoot", "delta", "encode", "offer"]

SCHEMA = 2

# A loop of a thousand iterations makes a thousand calls and events; the page gets the newest ones, and
# every call that something on the page refers to.
MAX_CALLS = 200
MAX_EVENTS = 400
# Engine order is for showing slots empty one after the other, which takes at most a second.
MAX_EXECUTED = 2000

T = TypeVar("T")

_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# From 0 on, as `_column` writes them.
_SMALL = bytes.maketrans(bytes(range(16)), _BASE64[::2][:16].encode())


@dataclass(frozen=True, slots=True)
class OfferedRoot:
    """A root as the page may name it: `id` is opaque, `order` picks its hue and stroke style.

    `cells` are the execution counts that Rebuild would run again; None: unknown, Rebuild is off.
    """

    id: int
    ref: TensorRef
    order: int
    cells: tuple[int, ...] | None = None


def offer(drawing: Drawing) -> tuple[OfferedRoot, ...]:
    """The roots of a picture that nobody can click: they look as the calls on them do, else as they come."""
    graph = drawing.snapshot
    called = {call.graph.uid[r.node]: call.order for call in drawing.calls if call.graph for r in call.roots[:1]}
    known = [called.get(graph.uid[ref.node], -1) if ref.node >= 0 else -1 for ref in graph.roots]
    free = (order for order in counting() if order not in known)
    return tuple(
        OfferedRoot(i, ref, order if order >= 0 else next(free))
        for i, (ref, order) in enumerate(zip(graph.roots, known))
    )


class _Numbered(defaultdict[T, int]):
    """Numbers things from 0 in the order in which they are first asked for."""

    def __init__(self, known: Iterable[T] = ()) -> None:
        super().__init__(self.__len__, ((thing, i) for i, thing in enumerate(known)))

    def many(self, things: Iterable[T]) -> list[int]:
        return list(map(self.__getitem__, things))


class _Strings:
    """The string table while a message is written."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.index = _Numbered(known)

    def __call__(self, text: str) -> int:
        return self.index[text]

    def many(self, texts: Iterable[str]) -> list[int]:
        return self.index.many(texts)

    def known(self, text: str | None) -> int | None:
        """None stays None: unknown."""
        return None if text is None else self.index[text]

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
        offered = offer(drawing) if roots is None else tuple(roots)
        strings = _Strings()
        body = _graph(drawing.snapshot, strings)
        body["roots"] = [_root(root, drawing.snapshot, strings) for root in offered]
        body |= _story(drawing, strings, off)
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
    offered = offer(drawing) if roots is None else tuple(roots)
    if offered != base.roots or not _same_structure(new, old) or not _same_memory(new, old):
        return None
    strings = _Strings(base.strings)
    body = _story(drawing, strings, off)
    body["slotState"] = _state_changes(old.slot_state, new.slot_state)
    if new.slot_freed_by != old.slot_freed_by:
        body |= _freed_by(new)
    body["leaves"] = _leaves(new, strings)
    head = {
        "schema": SCHEMA,
        "base": base.serial,
        "serial": base.serial + 1 if serial is None else serial,
        "strings": strings.since(len(base.strings)),
    }
    return _dump(head | body)


def _dump(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"))


class _Characters(dict[int, str]):
    """A difference as characters of base 64, five bits in each, the lowest first; 32 is added to all but the last.

    The lowest bit of all is the sign. As in source maps. Small differences are remembered: most are.
    """

    def __missing__(self, difference: int) -> str:
        left = 2 * difference if difference >= 0 else -2 * difference - 1
        text = ""
        while left > 31:
            text += _BASE64[32 + left % 32]
            left //= 32
        text += _BASE64[left]
        if len(text) <= 3:
            self[difference] = text
        return text


_characters = _Characters().__getitem__


def _column(values: array[int] | list[int]) -> str:
    """Numbers as the differences to the one before (the first: to 0), one after the other."""
    if values and values == values[:1] * len(values):  # places, modules and the like often are all the same
        return _characters(values[0]) + _characters(0) * (len(values) - 1)
    return "".join(map(_characters, map(sub, values, chain((0,), values))))


def _marks(meant: bytes) -> str:
    """Which of a sequence are meant (1, not 0): as many passed over and then one, or (negative) as many more."""
    text, at = "", 0
    for run in _ONES.finditer(meant):
        text += _characters(run.start() - at)
        if len(run[0]) > 1:
            text += _characters(1 - len(run[0]))
        at = run.end()
    return text


_ONES = re.compile(b"\\x01+")


# -- the graph -----------------------------------------------------------------------------------


def _graph(snapshot: Snapshot, strings: _Strings) -> dict[str, Any]:
    names = strings.many(map(op_name, snapshot.names))
    slot_names = strings.many(snapshot.slot_names)
    modules, storages = snapshot.modules, snapshot.storages
    return {
        "n": len(snapshot),
        "uid": _column(snapshot.uid),
        "name": _column(_looked_up(names, snapshot.name)),
        "seq": _column(snapshot.seq),
        "kind": _small(snapshot.kind),
        "ghost": _small(snapshot.ghost) if any(snapshot.ghost) else "",
        **_places(snapshot, strings),
        "module": _column(snapshot.module),
        "modulePath": _column([strings(module.path) for module in modules]),
        "moduleClass": _column([strings(module.class_name) for module in modules]),
        "moduleCall": _column([module.call for module in modules]),
        # Edges and slots of a node end where those of the next begin.
        "edgeEnd": _column(snapshot.edge_start[1:]),
        "edgeTo": _column(snapshot.edge_to),
        "slotEnd": _column(snapshot.slot_start[1:]),
        "slotName": _column(_looked_up(slot_names, snapshot.slot_name)),
        "slotState": _small(snapshot.slot_state),
        "slotType": _column(_slot_types(snapshot, strings)),
        "slotBytes": _column(snapshot.slot_bytes),
        "slotStorage": _column(snapshot.slot_storage),
        **_freed_by(snapshot),
        "storageBytes": _column(storages.bytes),
        "storageOwners": [[i, strings.many(paths)] for i, paths in sorted(storages.owners.items())],
        "leaves": _leaves(snapshot, strings),
        "owners": [[o.node, o.output_nr, strings(o.path), strings(o.kind)] for o in snapshot.shown_owners],
        "notes": strings.many(snapshot.notes),
    }


def _looked_up(table: Sequence[int], column: Iterable[int]) -> list[int]:
    """-1 gives the last of the table."""
    return list(map(table.__getitem__, column))


def _small(column: bytearray) -> str:
    """Numbers from 0 to 15 as they are, not as differences."""
    return column.translate(_SMALL).decode("ascii")


def _slot_types(snapshot: Snapshot, strings: _Strings) -> list[int]:
    def name(dtype: int, shape: int) -> int:
        known = snapshot.dtypes[dtype] if dtype >= 0 else None
        text = type_text(known, snapshot.shapes[shape] if shape >= 0 else None)
        return strings(text) if text else -1

    pairs = _Numbered[tuple[int, int]]()
    column = pairs.many(zip(snapshot.slot_dtype, snapshot.slot_shape))
    return _looked_up([name(*pair) for pair in pairs], column)


_CODE = attrgetter("cell", "line", "source", "outer_cell", "outer_line", "outer_source", "cell_id", "run")


def _places(snapshot: Snapshot, strings: _Strings) -> dict[str, Any]:
    """The places in the code once each; per node its place, and the iteration: a long loop has few lines."""
    known = _Numbered[tuple[Any, ...]]()
    # The last of each table is for the nodes of unknown place.
    place = [*known.many(map(_CODE, snapshot.places)), -1]
    iteration = [*(-1 if p.iteration is None else p.iteration for p in snapshot.places), -1]
    rows = [
        [cell, line, strings(source), outer_cell, outer_line, strings(outer_source), strings.known(cell_id), run]
        for cell, line, source, outer_cell, outer_line, outer_source, cell_id, run in known
    ]
    return {
        "place": _column(_looked_up(place, snapshot.place)),
        "iteration": _column(_looked_up(iteration, snapshot.place)),
        "places": rows,
    }


def _leaves(snapshot: Snapshot, strings: _Strings) -> list[list[Any]]:
    return [
        [node, strings.many(leaf.paths), strings(type_text(leaf.dtype, leaf.shape)), leaf.has_grad, leaf.bytes]
        for node, leaf in snapshot.leaves.items()
    ]


def _root(root: OfferedRoot, snapshot: Snapshot, strings: _Strings) -> dict[str, Any]:
    ref = root.ref
    return {
        "id": root.id,
        "path": strings(ref.path or ""),
        "node": ref.node,
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
    events = drawing.events[-MAX_EVENTS:]
    shown = {event.call for event in events}
    freed = {call.n: call.freed_bytes for call in drawing.calls if call.n in shown}
    return {
        "calls": [_call(call, strings, executed) for call in calls],
        "boundary": [[old, new, strings(path or "")] for old, new, path in boundary(drawing)],
        "events": [_event(event, freed, strings) for event in events],
        "event": drawing.current_event,
        "findings": [_finding(finding, drawing, strings) for finding in drawing.findings],
        "held": drawing.snapshot.held_bytes(),
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
        "iteration": place.iteration,
        "source": strings(place.source),
        "text": strings(_as_python(call)),
        "did": strings(_did(call)),
        "roots": [strings.known(ref.path) for ref in call.roots],
        "rootUids": [graph.uid[r.node] for r in call.roots if 0 <= r.node < len(graph)] if graph else [],
        "order": call.order,
        "result": call.result,
        "failedUid": call.failed_uid,
        "executed": call.executed.tolist() if call.n in with_order else None,
        "executedCount": call.executed_count,
    }


def _as_python(call: BackwardCall) -> str:
    """``loss.backward(retain_graph=True)``."""
    what = (call.roots[0].path or "(unnamed)") if len(call.roots) == 1 else f"{len(call.roots)} tensors"
    if call.api == "autograd.grad":
        return f"torch.autograd.grad({what}, …)"
    return f"{what}.backward({'retain_graph=True' if call.retain_graph else ''})"


def _did(call: BackwardCall) -> str:
    """What stands under a root's flag, behind the number of the call."""
    if call.result == "running":
        return "is running"
    if call.result == "raised":
        return "raised" if call.failed_uid is None else f"raised at its {ordinal(call.executed_count + 1)} node"
    if call.freed_slots:
        return f"freed {count(call.freed_slots, 'saved tensor')}"
    if call.retain_graph:
        return "ran, create_graph=True" if call.create_graph else "ran, retain_graph=True"
    return "ran, freed nothing"


def _event(event: Event, freed: Mapping[int, int], strings: _Strings) -> dict[str, Any]:
    return {
        "id": event.id,
        "kind": event.kind,
        "cell": event.cell,
        "call": event.call,
        "iteration": event.iteration,
        "label": strings(event.label),
        "ok": event.ok,
        "held": event.held_bytes,
        # Bytes that the call let go of: with `held` what there was before it. Between two ends of cells nobody looks.
        "freed": freed.get(event.call, 0) if event.call is not None else 0,
        "kept": event.snapshot is not None,
    }


_KINDS = {
    "second_backward": "Second backward",
    "inplace": "In-place conflict",
    "leak": "Memory grows",
    "no_grad": "No gradient",
    "refused": "PyTorch refuses",
    "silent": "Worth knowing",
}


def _is_past(finding: Finding, drawing: Drawing) -> bool:
    """Whether another call has succeeded since the one that raised."""
    since = [event.call for event in drawing.events if event.kind == "call" and event.ok and event.call is not None]
    return finding.severity == "error" and finding.call is not None and max(since, default=-1) > finding.call


def _kicker(finding: Finding, drawing: Drawing) -> str:
    """What stands over a finding: its kind, and the call that it is about."""
    kind = _KINDS.get(finding.kind, finding.kind)
    words = [f"Earlier: {kind.lower()}" if _is_past(finding, drawing) else kind]
    place = next((call.place for call in drawing.calls if call.n == finding.call), None)
    if place is not None and place.line is not None:
        words.append(spot_text(place.cell, place.line))
    if place is not None and place.iteration is not None:
        words.append(f"iteration {place.iteration}")
    if finding.severity == "warning" and finding.kind != "leak":
        words.append("nothing has raised yet")
    return " · ".join(words)


def _finding(finding: Finding, drawing: Drawing, strings: _Strings) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "kicker": strings(_kicker(finding, drawing)),
        "headline": strings(finding.headline),
        "text": strings(finding.text),
        "node": strings(finding.node),
        "uid": finding.node_uid,
        "carriers": strings.many(finding.carriers),
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
        "note": strings(": ".join(filter(None, [spot_text(*fix.at) if fix.at else "", fix.price]))),
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
        cell = raised.place.outer_cell or raised.place.cell
        text = "raised" if cell is None else f"after In[{cell}], which raised"
        return {"text": strings(text), "state": "raised", "cell": cell}
    after = f"after In[{cell}]" if cell is not None else last.label if last else ""
    return {"text": strings(after or "idle"), "state": "idle", "cell": cell}


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
    "uid name seq kind ghost place module edge_start edge_to slot_start slot_name "
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
    here, there = new.storages, old.storages
    if new.slot_bytes == old.slot_bytes and new.slot_storage == old.slot_storage:  # often so, and quick to tell
        return (here.key, here.bytes, here.owners) == (there.key, there.bytes, there.owners)
    kept = new.slot_state.translate(_in_state(*set(SlotState) - {SlotState.FREED}))

    def of_kept(column: Sequence[int]) -> Iterator[int]:
        return compress(column, kept)

    if list(of_kept(new.slot_bytes)) != list(of_kept(old.slot_bytes)):
        return False
    # Many slots have few storages: each pair of them is compared once.
    pairs = set(zip(of_kept(new.slot_storage), of_kept(old.slot_storage)))
    return all(
        mine == before == -1
        or (
            min(mine, before) >= 0
            and here.key[mine] == there.key[before]
            and here.bytes[mine] == there.bytes[before]
            and here.owners.get(mine) == there.owners.get(before)
        )
        for mine, before in pairs
    )


def _state_changes(old: bytearray, new: bytearray) -> list[tuple[int, int, str]]:
    """Rows [state before, state now, which of the slots in the state before]: a byte for each slot, less for runs."""
    rows = []
    for was in sorted(set(old)):
        among = bytes(compress(new, old.translate(_in_state(was))))
        rows += [(was, now, _marks(among.translate(_in_state(now)))) for now in sorted(set(among)) if now != was]
    return rows


def _freed_by(snapshot: Snapshot) -> dict[str, str]:
    """Which calls freed the freed slots, from the first slot on, and how many slots in a row each."""
    freed = compress(snapshot.slot_freed_by, snapshot.slot_state.translate(_in_state(SlotState.FREED)))
    runs = [(call, len(list(run))) for call, run in groupby(freed)]
    return {"freedBy": _column([call for call, _ in runs]), "freedCount": _column([count for _, count in runs])}


@cache
def _in_state(*states: int) -> bytes:
    """A table for `translate`: 1 for these states, else 0."""
    return bytes(state in states for state in range(256))
