"""Where to look first, and which tensors a finding is about: the same fields for findings of all kinds."""

from __future__ import annotations

from dataclasses import replace

from graphwidget.diagnosis.reuse.reuse import call_at
from graphwidget.diagnosis.wording import is_notebook_s, place_of, spoken
from graphwidget.model import Finding, Place, Record

__all__ = ["located"]


def located(record: Record, finding: Finding) -> Finding:
    """The finding with its `cause`, the place of the freeing call, and its names."""
    freed = call_at(record.calls, finding.freed_by) if finding.freed_by is not None else None
    call = call_at(record.calls, finding.call)
    places = {
        "second_backward": (finding.cause, finding.made_at),
        "inplace": (finding.modified_at,),
        "leak": (finding.stored_at or _stored_at(record, finding), finding.made_at),
        "no_grad": (finding.cut_at, finding.made_at),
    }.get(finding.kind, (finding.cause, finding.made_at))
    candidates = (*places, call.place if call is not None and finding.kind == "refused" else None)
    cause = next((place for place in candidates if place is not None and place.cell is not None), None)
    return replace(
        finding,
        cause=finding.cause or cause,
        stored_at=finding.stored_at or _stored_at(record, finding),
        freed_at=_known(freed.place) if freed is not None else None,
        names=finding.names or _names(finding),
    )


def _stored_at(record: Record, finding: Finding) -> Place | None:
    """The line that keeps the graphs that pile up: that of a hook, of an object, or what the first edit changes."""
    known = (one for one in finding.fixes if one.edits or one.id in ("remove_hook", "keep_numbers"))
    fix = next((one for one in known if one.at is not None), None)
    if finding.kind != "leak" or fix is None or fix.at is None:
        return finding.made_at if finding.kind == "leak" else None
    cell, line = fix.at
    run = next((one for _, one in sorted(record.runs.items(), reverse=True) if one.cell == cell), None)
    return place_of(run, line) if run is not None else None


def _known(place: Place) -> Place | None:
    return place if place.cell is not None else None


def _names(finding: Finding) -> tuple[str, ...]:
    """The carriers or holders of the graph, and the tensor."""
    paths = [path for path in (*finding.carriers, finding.tensor) if path and not is_notebook_s(path)]
    return tuple(dict.fromkeys(map(spoken, paths)))
