"""What was examined, and which errors have no finding: silence does not mean that all is well."""

from __future__ import annotations

from collections.abc import Iterable

from graphwidget.model import FROM_OUTSIDE, BackwardCall, CellRun, Finding, Record, Verdict, torch_messages

__all__ = ["verdict"]


def verdict(record: Record, findings: Iterable[Finding]) -> Verdict:
    """What was examined, and which errors the findings leave unexplained."""
    found = list(findings)
    raised = [call for call in record.calls if call.result == "raised"]
    with_finding = {n for finding in found if not finding.unexplained for n in (finding.call, *finding.also)}
    explained = {_alike(call) for call in raised if call.n in with_finding}
    failing = [call for call in raised if call.error_type not in FROM_OUTSIDE]
    unexplained = {_alike(call): call for call in reversed(failing) if _alike(call) not in explained}

    failed = {call.error for call in raised}
    runs = [run for run in record.runs.values() if run.error is not None]
    stopped = [run for run in runs if run.error_type in FROM_OUTSIDE]
    inside = [run for run in runs if run.through_backward and run not in stopped]
    refused = [run for run in inside if run.error not in failed]
    outside = [run for run in runs if run not in inside]
    others = [finding for finding in found if finding.call is None and not finding.unexplained]
    spots = {place.spot for one in others if (place := one.failed_at or one.made_at) is not None} - {""}
    settled = {_same(run) for run in runs if run.error_place is not None and run.error_place.spot in spots}
    open_: dict[object, CellRun] = {}
    other: dict[object, CellRun] = {}
    for run in (*refused, *outside):
        if _same(run) not in settled and not _leaves(run):
            of_autograd = run in refused or torch_messages.OF_AUTOGRAD.search(run.error or "")
            (open_ if of_autograd else other).setdefault(_same(run), run)
    return Verdict(
        findings=len(found),
        calls=max((call.n for call in record.calls), default=-1) + 1,  # threads end theirs in any order
        remembered=len(record.calls),
        raised=len(raised),
        refused=len(refused),
        unexplained=tuple(sorted(unexplained.values(), key=lambda call: call.n)),
        open_cells=tuple(open_.values()),
        other_cells=tuple(other.values()),
    )


def _alike(call: BackwardCall) -> tuple[object, ...]:
    """A key that equal errors of one line share, however often a loop raises them."""
    return (call.place.spot or call.n, call.error_type, call.error)


def _same(run: CellRun) -> tuple[object, ...]:
    line = run.error_place.line if run.error_place is not None else None
    return (run.cell_id or run.cell or run.file, line, run.error_type, run.error)


def _leaves(run: CellRun) -> bool:
    """``sys.exit()``: it says that all is well."""
    return run.error_type == "SystemExit" and run.error in ("", "0", "None")
