"""A forecast as the page shows it, and the question before a call that would raise runs anyway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

from graphwidget.diagnosis.wording import number, opening
from graphwidget.engine import forecast as engine
from graphwidget.model import BackwardCall, Forecast, Kind, Node, Snapshot, TensorRef, bytes_text
from graphwidget.render.words import call_text, count, op_name, place_text

__all__ = ["key_of", "question", "shown"]

MAX_AFTERWARDS = 300_000  # nodes times roots: the table says what happens to every other root
MAX_LEAVES = 8  # leaves that a question names


def shown(snapshot: Snapshot, calls: Sequence[BackwardCall], forecast: Forecast) -> dict[str, Any]:
    """A forecast made on `snapshot`."""
    held = engine.after(snapshot, forecast).held_bytes() if forecast.ok is not None else None
    affordable = len(snapshot) * len(snapshot.roots) <= MAX_AFTERWARDS
    later = engine.afterwards(snapshot, forecast) if affordable else ()
    outcome, *facts = _outcome(forecast, calls)
    return {
        "ok": forecast.ok,
        "outcome": outcome,
        "facts": facts,
        # By how much it changes the bytes that saved tensors hold.
        "held": held - snapshot.held_bytes() if held is not None else None,
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
    """The effect of a call in one line, then sentences about it."""
    slots = _slots(forecast) or "nothing"
    if forecast.ok is False:
        yield from _failure(forecast, calls)
        if forecast.executes:
            yield f"Before that it would free {slots}."
        return
    yield f"would free {slots}" if forecast.ok else f"not certain: would free at least {slots}"
    if forecast.frees and any(forecast.frees.values()):
        nodes = sum(map(bool, forecast.frees.values()))
        yield f"{'It is' if slots.startswith('1 ') else 'They are'} in {count(nodes, 'node')}, {_bytes(forecast)}."
    else:
        yield f"{count(_inner(forecast.executes), 'node')} would run. What is held stays held."
    if forecast.ok is None and forecast.why:
        yield f"Not known: {forecast.why}."


def _failure(forecast: Forecast, calls: Sequence[BackwardCall]) -> Iterator[str]:
    """Where and why a call would raise, in one line; then the places in the code, as far as they are known."""
    node = forecast.fails_at
    reason = forecast.why or "the reason is not known"
    freer = _freer(node, forecast, calls) if node is not None and forecast.reason == "freed" else None
    if freer is not None:
        slot = f"`{forecast.fails_slot.name}`" if forecast.fails_slot is not None else "what it needs"
        reason = f"{number(freer)} freed {f'its {slot}' if forecast.fails_slot is not None else slot}"
    yield f"would raise at `{op_name(node.name)}`: {reason}" if node is not None else f"would raise: {reason}"
    made = place_text(node.place) if node is not None else ""
    if made:
        yield f"The node was made at {made}."
    ran = place_text(next((call.place for call in calls if call.n == freer), None))
    if ran:
        yield f"{opening(freer or 0)} ran at {ran}."


def _bytes(forecast: Forecast) -> str:
    """``110.5 kB, of which 17.3 kB come back: the rest has other owners``."""
    freed, returned = bytes_text(forecast.freed_bytes), bytes_text(forecast.returned_bytes)
    if forecast.returned_bytes == forecast.freed_bytes:
        return f"{freed}, all of which come back"
    return f"{freed}, of which {returned} come back: the rest has other owners"


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
