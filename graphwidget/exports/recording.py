"""A recording: the present picture, and the answers that the page asks a kernel for, written down ahead.

The page of `page.to_html` has no kernel, and a saved notebook may have none: the front end then looks up an answer
under the words of its request (`answerKey` in js/src/state/kernel.ts).
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from graphwidget.diagnosis.steps.calls import past
from graphwidget.engine.forecast import forecast
from graphwidget.model import Drawing, Event, Snapshot, Steps
from graphwidget.render.wire import encode, offer
from graphwidget.replies.forecasts import shown
from graphwidget.replies.memory import inspection, keeping
from graphwidget.replies.moments import before, moment
from graphwidget.replies.steps import SENTENCES, sentences, steps_ahead, whole

__all__ = ["packed", "recording"]

# What a recording may hold, in characters of JSON before compression, which makes them about a twentieth.
MOST = 5_000_000
# Where a message is cut into pieces: behind each row.
_ROWS = re.compile(r"(?<=[\]}],)")
# Of larger graphs forecasts and the owners of a node are left out: each answer walks over the graph.
MAX_INSPECTED = 400
MAX_ROOTS = 20
MAX_STEPS = 1000


def recording(drawing: Drawing) -> dict[str, Any]:
    """The picture and the answers, as JSON data.

    If all answers are too much, older moments are left out first; the timeline then shows them as not stored.
    """
    drawing = replace(drawing, busy=None)
    answers = {**dict(_forecasts(drawing)), **dict(_inspections(drawing.snapshot))}
    left = MOST - sum(map(_length, answers.values()))
    kept: set[int] = set()
    for event in reversed(drawing.events):
        found = dict(_about(drawing, event))
        left -= sum(map(_length, found.values()))
        if left < 0:
            break
        answers |= found
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
            foreseen = forecast(snapshot, [root.ref], retain_graph=keep, grad_given=True)
            forecasts[name] = shown(snapshot, drawing.calls, foreseen)
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
    """A recording as text without any character that means something to a page: JSON, gzip, base64.

    The messages of two moments differ in a few rows, but gzip does not look back as far as to the one before. So each
    row is written once, and a message is a list of stretches of rows: the first one and their number, and so on.
    """
    pieces: dict[str, int] = {}
    answers = {
        name: {**answer, "wire": _stretches(answer["wire"], pieces)} if answer.get("wire") else answer
        for name, answer in recording["answers"].items()
    }
    text = json.dumps({**recording, "answers": answers, "pieces": list(pieces)}, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")


def _stretches(message: str, pieces: dict[str, int]) -> list[int]:
    """A message as stretches of `pieces`, which get the new ones."""
    found: list[int] = []
    for piece in _ROWS.split(message):
        at = pieces.setdefault(piece, len(pieces))
        if found and at == found[-2] + found[-1]:
            found[-1] += 1
        else:
            found += [at, 1]
    return found
