"""Backward hooks that no call has run, and errors of lines that read what only such a hook fills.

A backward passes only what requires grad. Where a module computes with nothing that does, or where its result is cut
off before the loss, no gradient comes by, and a hook there is silently left out. What fails is a line far behind it:
``self.gradients[name]`` raises KeyError. A second run measures which hooks never ran, and why.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.findings import refused
from graphwidget.diagnosis.findings.silences.hooks import remedies
from graphwidget.diagnosis.findings.silences.hooks.filled import filled_by, function_of, reads
from graphwidget.diagnosis.no_graph.measured import place_at
from graphwidget.diagnosis.reuse.reuse import call_at
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Finding, MeasuredHook, Place, Record

__all__ = ["find", "may_be_there"]

_REGISTERING = re.compile(
    r"\.register_(?:(?:full_)?backward_hook|full_backward_pre_hook|hook|post_accumulate_grad_hook)\b"
)


def may_be_there(record: Record) -> bool:
    """Whether another run may find hooks that never ran: some are registered, and a backward call succeeded."""
    called = any(call.result == "ok" and call.api == "backward" for call in record.calls)
    return called and any(_REGISTERING.search(run.source) for run in record.runs.values())


def find(record: Record) -> Iterator[Finding]:
    """Yield a finding for each line that registers such hooks: an error, if a line that raised reads what they fill."""
    told: set[object] = set()
    failed = any(call.result == "raised" for call in record.calls)
    for one in record.lineage.hooks if record.lineage is not None else ():
        call = _missed(record, one)
        place = place_at(record, one.lines)
        if call is None or place is None:
            continue
        raised = _raised(record, one, call)
        why = remedies.of(record, one)
        silent = not (one.elsewhere or failed or _may_be_meant(one, why))
        key = raised.run if raised is not None else (where(place), one.why)
        if (raised is not None or silent) and key not in told:
            told.add(key)
            yield _of(record, one, call, place, raised, why)


def _may_be_meant(one: MeasuredHook, why: remedies.Why) -> bool:
    """Whether the hook may be for another time: a teacher's that runs without gradients, another model's.

    It is not where a line is known that cut what a call began at off from it.
    """
    return one.why in ("grad_off", "uncalled") or (one.why in ("", "tensor") and why.cut is None)


def _missed(record: Record, one: MeasuredHook) -> BackwardCall | None:
    """The last call that ran and could have come to a hook. One that was asked for some inputs passes only these."""
    calls = (call_at(record.calls, n) for n in reversed(one.calls))
    return next((c for c in calls if c is not None and c.result == "ok" and c.api == "backward" and not c.inputs), None)


def _raised(record: Record, one: MeasuredHook, call: BackwardCall) -> CellRun | None:
    """The run of a cell that raised, behind a call, because of what the hook did not fill."""
    hook = function_of(record, one.hook)
    filled = filled_by(record, hook) if hook is not None else ()
    for run in Cells.of(record).latest if filled else ():
        behind = run.error is not None and (run.file is not None or run.run >= (call.place.run or 0))
        if behind and not run.through_backward and reads(record, run, filled) and not refused.of_run(record, run):
            return run
    return None


def _of(
    record: Record,
    one: MeasuredHook,
    call: BackwardCall,
    place: Place,
    raised: CellRun | None,
    why: remedies.Why,
) -> Finding:
    hook = function_of(record, one.hook)
    filled = filled_by(record, hook) if hook is not None else ()
    name = hook.name if isinstance(hook, ast.FunctionDef) and hook.name != "__call__" else ""
    owner = remedies.name_of(record, one)
    on = f" of `{owner}`" if owner else ""
    there = f" on `{owner}`" if owner and owner not in place.source else ""
    text = (
        f"{short(place.source)} ({where(place)}) registered it{there}. "
        f"{short(call.place.source)} ({where(call.place)}) ran and did not call it. {why.text}"
    )
    failing = None
    if raised is not None:
        failing = raised.error_place or place_of(raised, 1)
        what = f"{short(failing.source)} ({where(failing)})"
        text = f"{what} reads what only this hook fills ({', '.join(f'`{each}`' for each in filled[:3])}). {text}"
    return Finding(
        "refused" if failing is not None else "silent",
        "error" if failing is not None else "warning",
        text,
        f"`{name}`, a backward hook{on}, was never called." if name else f"A backward hook{on} was never called.",
        None if failing is not None else call.n,
        made_at=why.place or place,
        failed_at=failing,
        cause=why.place or place,
        cut_at=why.cut,
        names=tuple(dict.fromkeys(filter(None, (owner, name, *filled)))),
        fixes=why.fixes,
    )
