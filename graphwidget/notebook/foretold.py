"""A forecast as the page shows it, and the question before a call that would raise runs anyway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

from graphwidget.engine import forecast as engine
from graphwidget.model import BackwardCall, Forecast, Kind, Node, Snapshot, TensorRef, bytes_text
from graphwidget.render.words import call_text, count, op_name, place_text

__all__ = ["key_of", "question", "shown"]

MAX_AFTERWARDS = 300_000  # nodes times roots: the table says what happens to every other root
MAX_LEAVES = 8  # leaves that a question names


def shown(snapshot: Snapshot, calls: Sequence[BackwardCall], forecast: Forecast) -> dict[str, Any]:
    """A forecast made on `snapshot`."""
    affordable = len(snapshot) * len(snapshot.roots) <= MAX_AFTERWARDS
    later = engine.afterwards(snapshot, forecast) if affordable else ()
    outcome, *facts = _outcome(forecast, calls)
    return {
        "ok": forecast.ok,
        "outcome": outcome,
        "facts": facts,
        "failsAt": forecast.fails_at.uid if forecast.fails_at else None,
        "frees": [
            [node.uid, saved.slot - snapshot.slot_start[node.index]]
            for node, slots in forecast.frees.items()
            for saved in slots
        ],
        "reaches": list(map(_leaf, forecast.reaches)),
        "assumes": list(forecast.assumes),
        "afterwards": [
            {"root": ref.path, "backward": then.word, "at": then.fails_at.name if then.fails_at else None}
            for ref, then in later
        ],
        "sentence": _sentence(forecast, later, calls),
    }


def question(what: str, forecast: Forecast, calls: Sequence[BackwardCall], *, keeps_grad: bool) -> dict[str, Any]:
    """The question before `what` (``loss.backward()``) runs although it would raise: why, and the effects so far."""
    frees = f"free {_slots(forecast)}, {bytes_text(forecast.freed_bytes)}" if _slots(forecast) else "free nothing"
    lost = ". Freed saved tensors do not come back" if _slots(forecast) else ""
    names = list(map(_leaf, forecast.reaches))
    more = f" and {len(names) - MAX_LEAVES} more" if len(names) > MAX_LEAVES else ""
    adds = f"add to the .grad of {', '.join(f'`{name}`' for name in names[:MAX_LEAVES])}{more}"
    changes = (adds if names else "add to no .grad") + (" (put back afterwards)" if names and keeps_grad else "")
    return {
        "key": key_of(forecast, what, keeps_grad),
        "title": f"{what} would raise",
        "lines": [
            f"It would raise {why(forecast, calls)}.",
            f"Before that it would {frees}{lost}.",
            f"It would {changes}.",
            *(f"Taken for granted: {text}" for text in forecast.assumes),
        ],
    }


def key_of(forecast: Forecast, what: str, keeps_grad: bool) -> int:
    """A number for the content of a question: an answer holds for this forecast and for no other one. Never 0."""
    frees = sorted((node.uid, saved.name) for node, slots in forecast.frees.items() for saved in slots)
    at = forecast.fails_at.uid if forecast.fails_at else None
    said = (what, keeps_grad, forecast.reason, at, forecast.why, frees, [node.uid for node in forecast.reaches])
    return crc32(repr(said).encode()) or 1


def why(forecast: Forecast, calls: Sequence[BackwardCall]) -> str:
    """Where and why a call would raise: "at `ReluBackward0` (In[3]:2): its saved tensor result was freed by call 1"."""
    reason = forecast.why or "for a reason that is not known"
    node = forecast.fails_at
    if node is None:
        return f"because {reason}"
    freer = _freer(node, forecast, calls) if forecast.reason == "freed" else None
    if freer is not None:
        reason = reason.replace("an earlier call", call_text(freer, next((c for c in calls if c.n == freer), None)))
    where = place_text(node.place)
    return f"at `{op_name(node.name)}`{f' ({where})' if where else ''}: {reason}"


def _freer(node: Node, forecast: Forecast, calls: Sequence[BackwardCall]) -> int | None:
    """The call that freed what the failing node needs; for a node without slots a call that ran it."""
    slots = [forecast.fails_slot] if forecast.fails_slot is not None else node.saved
    freers = {saved.freed_by for saved in slots if saved.freed_by is not None}
    if not freers:
        freers = {call.n for call in calls if not call.retain_graph and node.uid in call.executed}
    return min(freers, default=None)


def _outcome(forecast: Forecast, calls: Sequence[BackwardCall]) -> Iterator[str]:
    """The effect of a call in a few words, then sentences about it."""
    slots = sum(map(len, forecast.frees.values()))
    if forecast.ok is False:
        yield "would raise"
        yield why(forecast, calls)
        if forecast.executes:
            yield f"before that it frees {_slots(forecast) or 'nothing'}"
        return
    yield f"frees {slots}" + ("?" if forecast.ok is None else "")
    if slots:
        yield f"in {count(sum(map(bool, forecast.frees.values())), 'node')}, {bytes_text(forecast.freed_bytes)}"
        rest = ", the rest has other owners" if forecast.returned_bytes < forecast.freed_bytes else ""
        yield f"{bytes_text(forecast.returned_bytes)} comes back{rest}"
    else:
        yield f"{count(_inner(forecast.executes), 'node')} run, all slots stay held"
    if forecast.ok is None and forecast.why:
        yield forecast.why


def _inner(nodes: Iterable[Node]) -> int:
    """Number of nodes without leaves, which are counted separately, as everywhere in the view."""
    return sum(node.kind != Kind.ACCUMULATE for node in nodes)


def _slots(forecast: Forecast) -> str:
    """``4 saved tensors``; empty if it would free none."""
    slots = sum(map(len, forecast.frees.values()))
    return count(slots, "saved tensor") if slots else ""


def _leaf(node: Node) -> str:
    return node.labels[0] if node.labels else "an unnamed leaf"


def _sentence(forecast: Forecast, later: Sequence[tuple[TensorRef, Forecast]], calls: Sequence[BackwardCall]) -> str:
    """A forecast as it is read aloud before the click."""
    if forecast.ok is False:
        return f"would raise {why(forecast, calls).replace('`', '')}."
    slots = _slots(forecast)
    text = ("not certain. " if forecast.ok is None else "") + f"frees {slots or 'nothing'}"
    raising = [
        f"{ref.path}.backward() would then raise" + (f" at {then.fails_at.name}" if then.fails_at else "")
        for ref, then in later
        if then.ok is False
    ]
    return text + (f"; afterwards {', '.join(raising)}." if raising else ".")
