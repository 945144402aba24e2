"""A recording: the present picture, and the answers that the page asks a kernel for, written down ahead.

The page of `page.to_html` has no kernel, and a saved notebook may have none: the front end then looks up an answer
under the words of its request (`answerKey` in js/src/state/kernel.ts).
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from graphwidget.engine import memory
from graphwidget.model import Drawing, Event, Snapshot, bytes_text
from graphwidget.render.wire import OfferedRoot, encode, offer
from graphwidget.render.words import count

__all__ = ["inspection", "moment", "packed", "recording"]

MAX_KEPT_BY = 20
# What a recording may hold, in characters of JSON before compression, which makes them about a tenth.
MAX_MOMENTS = 8_000_000
# Of larger graphs the owners of a node are left out: each answer walks over the graph once.
MAX_INSPECTED = 400


def moment(drawing: Drawing, event: Event, roots: Sequence[OfferedRoot] | None = None) -> str:
    """The wire message of an earlier moment of `drawing`, whose event has a snapshot.

    Parameters
    ----------
    roots
        Its roots as the page may name them. Default: as `offer` numbers them.
    """
    assert event.snapshot is not None, event.id
    events = tuple(each for each in drawing.events if each.id <= event.id)
    numbers = {each.call for each in events}
    calls = tuple(call for call in drawing.calls if call.n in numbers)
    past = Drawing(event.snapshot, calls, events, (), event.id, drawing.torch)
    return encode(past, event.id, offer(past) if roots is None else roots)


def inspection(snapshot: Snapshot, index: int) -> dict[str, Any]:
    """What the inspector asks about a node: who keeps it alive, and who else holds the memory of its saved tensors."""
    kept_by = [
        {
            "path": kept.path,
            "kind": kept.kind,
            "releases": f"releases {count(kept.nodes, 'node')}, {bytes_text(kept.bytes)}"
            if kept.nodes
            else "alone releases nothing",
        }
        for kept in memory.kept_by(snapshot, index)[:MAX_KEPT_BY]
    ]
    slots = snapshot.slots_of(index)
    storages = [
        {"slot": slot - slots.start, "owners": list(snapshot.storages.owners.get(snapshot.slot_storage[slot], ()))}
        for slot in slots
        if snapshot.slot_storage[slot] >= 0
    ]
    return {"keptBy": kept_by, "storages": storages}


def recording(drawing: Drawing, roots_of: Callable[[Drawing], Sequence[OfferedRoot]] = offer) -> dict[str, Any]:
    """The picture and the answers, as JSON data.

    Older moments are left out first if all of them are too much; the timeline then shows them as not stored.
    """
    drawing = replace(drawing, busy=None)
    moments: dict[int, str] = {}
    left = MAX_MOMENTS
    for event in reversed(drawing.events[:-1]):
        if event.snapshot is None or left <= 0:
            continue
        text = moment(drawing, event)
        left -= len(text)
        if left > 0:
            moments[event.id] = text
    last = drawing.events[-1:]
    stored = tuple(event if event.id in moments else replace(event, snapshot=None) for event in drawing.events[:-1])
    shown = replace(drawing, events=(*stored, *last))
    answers = {f"snapshot {id}": {"wire": wire} for id, wire in moments.items()}
    answers |= {f"inspect {uid}": answer for uid, answer in _inspections(drawing.snapshot)}
    return {"wire": encode(shown), "answers": answers}


def _inspections(snapshot: Snapshot) -> Iterator[tuple[int, dict[str, Any]]]:
    if len(snapshot) <= MAX_INSPECTED:
        for index, uid in enumerate(snapshot.uid):
            yield uid, inspection(snapshot, index)


def packed(recording: dict[str, Any]) -> str:
    """A recording as text without any character that means something to a page: JSON, gzip, base64."""
    text = json.dumps(recording, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")
