"""A recording: the present picture, and the answers that the page asks a kernel for, written down ahead.

The page of `page.to_html` has no kernel, and a saved notebook may have none: the front end then looks up an answer
under the words of its request (`answerKey` in js/src/state/kernel.ts).
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from graphwidget.diagnosis.steps.calls import past
from graphwidget.engine import keepers, memory
from graphwidget.engine.forecast import forecast
from graphwidget.model import Drawing, Event, Snapshot, Steps, bytes_text
from graphwidget.notebook.foretold import shown
from graphwidget.notebook.stepping import SENTENCES, before, sentences, steps_ahead, whole
from graphwidget.render.wire import OfferedRoot, encode, offer
from graphwidget.render.words import count

__all__ = ["inspection", "keeping", "moment", "packed", "recording"]

MAX_KEPT_BY = 20
# What a recording may hold, in characters of JSON before compression, which makes them about a tenth.
MOST = 8_000_000
# Of larger graphs forecasts and the owners of a node are left out: each answer walks over the graph.
MAX_INSPECTED = 400
MAX_ROOTS = 20
MAX_STEPS = 1000
KEEPING_S = 1.0  # time for dividing the memory of stored moments among names


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


def keeping(drawing: Drawing) -> dict[str, Any]:
    """Who kept which bytes of saved tensors at the stored moments, the newest first as far as the time goes."""
    deadline = perf_counter() + KEEPING_S
    ids: list[int] = []
    moments: list[Mapping[str, int]] = []
    for event in reversed(drawing.events):
        # Without the bytes held, not all that was alive is in the snapshot.
        if event.snapshot is None or event.held_bytes is None or perf_counter() > deadline:
            continue
        found = keepers.keepers(event.snapshot)
        if found is not None:
            ids.append(event.id)
            moments.append(found)
    names, rows = keepers.bands(moments[::-1])
    return {"names": list(names), "moments": [[id, row] for id, row in zip(ids[::-1], rows)]}


def recording(drawing: Drawing) -> dict[str, Any]:
    """The picture and the answers, as JSON data.

    If all answers are too much, older moments are left out first; the timeline then shows them as not stored.
    """
    drawing = replace(drawing, busy=None)
    answers = {**dict(_forecasts(drawing)), **dict(_inspections(drawing.snapshot))}
    left = MOST - sum(map(_length, answers.values()))
    kept: set[int] = set()
    for event in reversed(drawing.events):
        told = dict(_about(drawing, event))
        left -= sum(map(_length, told.values()))
        if left < 0:
            break
        answers |= told
        kept.add(event.id)
    stored = tuple(event if event.id in kept else replace(event, snapshot=None) for event in drawing.events[:-1])
    answers["keepers"] = keeping(drawing)
    return {"wire": encode(replace(drawing, events=(*stored, *drawing.events[-1:]))), "answers": answers}


def _length(answer: dict[str, Any]) -> int:
    return len(json.dumps(answer))


def _about(drawing: Drawing, event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    """What can be asked about one moment: its picture, and the steps of its call."""
    if event.snapshot is not None and event is not drawing.events[-1]:
        yield f"snapshot {event.id}", {"wire": moment(drawing, event)}
    call = next((call for call in drawing.calls if call.n == event.call), None) if event.kind == "call" else None
    if call is not None:
        steps = past(call)
        then = before(call, call.graph, drawing.events, drawing.calls) if steps.known and call.graph else None
        wire = encode(then, call.n) if then is not None else None
        yield f"steps_of {call.n}", {**_all_steps(steps, call.n, call.n), "wire": wire}


def _forecasts(drawing: Drawing) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each root's backward would do, as a whole and step by step. `offer` numbers the roots like this."""
    snapshot = drawing.snapshot
    if len(snapshot) > MAX_INSPECTED:
        return
    for root in offer(drawing)[:MAX_ROOTS]:
        if root.ref.node < 0 or snapshot.ghost[root.ref.node]:
            continue
        forecasts = {}
        for name, keep in (("backward", False), ("retain", True)):
            told = forecast(snapshot, [root.ref], retain_graph=keep, grad_given=True)
            forecasts[name] = shown(snapshot, drawing.calls, told)
            steps = steps_ahead(replace(snapshot, roots=(root.ref,)), keep)
            walk = -1 - 2 * root.id - keep
            yield f"steps_ahead {root.id} {str(keep).lower()}", {**_all_steps(steps, walk, None), "wire": None}
        yield f"forecast {root.id}", forecasts


def _all_steps(steps: Steps, walk: int, n: int | None) -> dict[str, Any]:
    """Steps with the sentences of all: there is nobody to ask for more."""
    some = range(0, min(len(steps), MAX_STEPS), SENTENCES)
    rows = [row for at in some for row in sentences(steps, at)["rows"]]
    return {**whole(steps, walk, n), "rows": rows}


def _inspections(snapshot: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    if len(snapshot) <= MAX_INSPECTED:
        for index, uid in enumerate(snapshot.uid):
            yield f"inspect {uid}", inspection(snapshot, index)


def packed(recording: dict[str, Any]) -> str:
    """A recording as text without any character that means something to a page: JSON, gzip, base64."""
    text = json.dumps(recording, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")
