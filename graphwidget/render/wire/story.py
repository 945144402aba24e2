"""The story in a message: calls, events, findings and the status line. Small, and sent in full each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphwidget.model import BackwardCall, Drawing, Finding, Fix
from graphwidget.render.border import boundary
from graphwidget.render.wire.columns import Strings
from graphwidget.render.wire.moments import moments
from graphwidget.render.words import count, ordinal, place_text, whole_text

__all__ = ["MAX_CALLS", "story"]

# A loop of a thousand iterations makes a thousand calls; the page gets the newest ones, and every call that something
# on the page refers to.
MAX_CALLS = 200
# The page uses engine order to show slots emptying one after the other, which takes at most a second.
MAX_EXECUTED = 2000


def story(drawing: Drawing, strings: Strings, off: bool) -> dict[str, Any]:
    """Everything but the graph."""
    calls = _shown_calls(drawing)
    executed = _shown_orders(calls)
    return {
        "calls": [_call(call, strings, executed) for call in calls],
        "boundary": [[old, new, strings(path or "")] for old, new, path in boundary(drawing)],
        "events": moments(drawing, strings),
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


def _call(call: BackwardCall, strings: Strings, with_order: set[int]) -> dict[str, Any]:
    place = call.place
    graph = call.graph
    return {
        "n": call.n,
        "cell": place.cell,
        "run": place.run,
        "file": strings.known(place.file),
        "fn": strings.known(place.function),
        "inner": place.inner_run,
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
        "freedBy": call.freed_by,
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
    """The text under a root's flag, after the number of the call."""
    if call.result == "running":
        return "is running"
    if call.result == "raised":
        return "raised" if call.failed_uid is None else f"raised at its {ordinal(call.executed_count + 1)} node"
    if call.freed_slots:
        return f"freed {count(call.freed_slots, 'saved tensor')}"
    if call.retain_graph:
        return "ran, create_graph=True" if call.create_graph else "ran, retain_graph=True"
    return "ran, freed nothing"


_KINDS = {
    "second_backward": "Second backward",
    "inplace": "In-place conflict",
    "leak": "Memory grows",
    "no_grad": "No gradient",
    "refused": "Refused by PyTorch",
    "silent": "Worth knowing",
}


def _is_past(finding: Finding, drawing: Drawing) -> bool:
    """Whether another call has succeeded since the one that raised."""
    since = [event.call for event in drawing.events if event.kind == "call" and event.ok and event.call is not None]
    return finding.severity == "error" and finding.call is not None and max(since, default=-1) > finding.call


def _cell(finding: Finding, drawing: Drawing) -> int | None:
    """The cell in which an error happened; None: unknown, or the finding is about the present state."""
    if finding.severity != "error":
        return None
    place = next((call.place for call in drawing.calls if call.n == finding.call), finding.made_at)
    if place is None:
        return None
    return place.outer_cell if place.outer_cell is not None else place.cell


def _kicker(finding: Finding, drawing: Drawing) -> str:
    """The text over a finding: its kind, and where its call or its cell failed."""
    kind = _KINDS.get(finding.kind, finding.kind)
    words = [f"Earlier: {kind[:1].lower()}{kind[1:]}" if _is_past(finding, drawing) else kind]
    failed = finding.made_at if finding.severity == "error" and finding.call is None else None
    place = next((call.place for call in drawing.calls if call.n == finding.call), failed)
    if place is not None and place.line is not None:
        words.append(place.spot)
    if place is not None and place.iteration is not None:
        words.append(f"iteration {place.iteration}")
    warns = finding.severity == "warning" and finding.kind != "leak"
    if warns or (finding.severity == "info" and finding.kind == "inplace"):
        words.append("nothing has raised yet")
    return " · ".join(words)


def _finding(finding: Finding, drawing: Drawing, strings: Strings) -> dict[str, Any]:
    modified = finding.modified_at
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "kicker": strings(_kicker(finding, drawing)),
        "headline": strings(finding.headline),
        "text": strings(whole_text(finding)),
        "call": finding.call,
        "cell": _cell(finding, drawing),
        "node": strings(finding.node),
        "uid": finding.node_uid,
        "tensor": strings(finding.tensor or ""),
        "wrote": strings(finding.modified_by),
        "wroteAt": strings(place_text(modified) if modified else ""),
        "carriers": strings.many(finding.carriers),
        "path": strings.many(finding.path),
        "uids": list(finding.uids),
        "bytes": finding.bytes,
        "fixes": [_fix(fix, finding, strings) for fix in finding.fixes],
    }


def _fix(fix: Fix, finding: Finding, strings: Strings) -> dict[str, Any]:
    return {
        "id": strings(fix.id),
        "text": strings(fix.text),
        "verified": fix.verified,
        "note": strings(": ".join(filter(None, [fix.spot, fix.price]))),
        "edit": strings.many(fix.edit),
        "key": finding.key(fix) if fix.by_machine else 0,
        "tried": strings(fix.tried.sentence if fix.tried is not None else ""),
        "passed": fix.tried.ok if fix.tried is not None else None,
    }


def _status(drawing: Drawing, strings: Strings, off: bool) -> dict[str, Any]:
    last = drawing.events[-1] if drawing.events else None
    cell = last.cell if last else None
    if drawing.record_of:
        text, why = f"record of {drawing.record_of}: read-only", "This is the record of a run: nothing runs here."
        return {"text": strings(text), "state": "off", "cell": cell, "why": strings(why)}
    if off:
        why = "Nothing is recorded any more: run your code again."
        return {"text": strings("tracking is off"), "state": "off", "cell": cell, "why": strings(why)}
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
