"""The changes since an earlier message, if the structure of the graph is the same: only the new states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress

from graphwidget.model import Drawing, SlotState, Snapshot
from graphwidget.render.wire.columns import Strings, in_state, marks
from graphwidget.render.wire.graph import freed_by, leaves
from graphwidget.render.wire.message import SCHEMA, Base, OfferedRoot, dump, offer
from graphwidget.render.wire.story import story

__all__ = ["delta"]


def delta(
    drawing: Drawing,
    base: Base,
    serial: int | None = None,
    roots: Sequence[OfferedRoot] | None = None,
    *,
    off: bool = False,
) -> str | None:
    """The changes since `base` as JSON text; None: the structure has changed, so a new base is needed."""
    new, old = drawing.snapshot, base.drawing.snapshot
    offered = offer(drawing) if roots is None else tuple(roots)
    if offered != base.roots or not _same_structure(new, old) or not _same_memory(new, old):
        return None
    strings = Strings(base.strings)
    body = story(drawing, strings, off)
    body["slotState"] = _state_changes(old.slot_state, new.slot_state)
    if new.slot_freed_by != old.slot_freed_by:
        body |= freed_by(new)
    body["leaves"] = leaves(new, strings)
    head = {
        "schema": SCHEMA,
        "base": base.serial,
        "serial": base.serial + 1 if serial is None else serial,
        "strings": strings.since(len(base.strings)),
    }
    return dump(head | body)


_STRUCTURE = (
    "uid name seq kind ghost place module edge_start edge_to slot_start slot_name "
    "names slot_names places modules owners notes"
).split()


def _same_structure(new: Snapshot, old: Snapshot) -> bool:
    if new is old:
        return True
    return all((a := getattr(new, column)) is (b := getattr(old, column)) or bool(a == b) for column in _STRUCTURE)


def _same_memory(new: Snapshot, old: Snapshot) -> bool:
    """Whether all slots that still hold memory hold the same memory; a freed slot keeps its last known size."""
    if new is old:
        return True
    here, there = new.storages, old.storages
    if new.slot_bytes == old.slot_bytes and new.slot_storage == old.slot_storage:  # the usual case, and a quick check
        return (here.key, here.bytes, here.owners) == (there.key, there.bytes, there.owners)
    kept = new.slot_state.translate(in_state(*set(SlotState) - {SlotState.FREED}))

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
    """Rows [state before, state now, which slots of the state before]: a byte per changed slot, less for runs."""
    rows = []
    for was in sorted(set(old)):
        among = bytes(compress(new, old.translate(in_state(was))))
        rows += [(was, now, marks(among.translate(in_state(now)))) for now in sorted(set(among)) if now != was]
    return rows
