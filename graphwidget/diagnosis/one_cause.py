"""Several findings of one cause: it is said once, with all that it has done."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from graphwidget.diagnosis.numbering import without_numbers
from graphwidget.diagnosis.reuse.reuse import call_at
from graphwidget.diagnosis.wording import called_at, outer_at, where
from graphwidget.model import Finding, Place, Record, TextEdit

__all__ = ["each_cause_once"]

_MOST_PLACES = 8
_CALL = re.compile(r"[\u2460-\u2469]|\b[Cc]all \d+")  # the number of a call in a sentence


@dataclass
class _Group:
    """Findings of one cause, the newest error first; `edits` grow to those of the silent one that changes most."""

    kind: Hashable
    edits: frozenset[TextEdit]
    findings: list[Finding]


def each_cause_once(record: Record, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings, where of several of one cause the first stays, with the names of all.

    Silent ones are of one cause if the same edits mend them: a backward that reaches no parameter, a step that changes
    nothing, parameters without a gradient are one mistake. Errors of calls are, if they say the same of the same line
    and have the same fixes: grad mode that a line left off stops all calls from there on. The places of these calls are
    said.

    Parameters
    ----------
    record
        The record of which the findings are.
    findings
        Errors first, as they are to be told.
    """
    groups: list[_Group] = []
    for one in findings:
        kind, edits = _kind(one), frozenset(one.fixes[0].edits if one.fixes else ())
        group = next((known for known in groups if kind is not None and _is_same(known, kind, edits)), None)
        if group is None:
            groups.append(_Group(kind, edits, [one]))
        else:
            group.findings.append(one)
    for group in groups:
        first, *others = group.findings
        found = (name for one in group.findings for name in one.names)
        yield _with_calls(record, replace(first, names=tuple(dict.fromkeys(found))), others) if others else first


def _kind(finding: Finding) -> Hashable:
    """What findings of one cause have in common, beside their edits; None: it is always told by itself."""
    if finding.kind == "silent" and finding.severity == "warning":
        return "silent" if finding.fixes and finding.fixes[0].edits else None
    if finding.severity != "error" or finding.call is None or finding.unexplained or not finding.fixes:
        return None
    fixes = tuple((fix.id, fix.text, fix.edits) for fix in finding.fixes)
    return finding.kind, _CALL.sub("", finding.headline), where(finding.cause), _file_of(finding.cause), fixes


def _file_of(place: Place | None) -> tuple[str | None, int | None]:
    return (place.file, place.line) if place is not None else (None, None)


def _is_same(group: _Group, kind: Hashable, edits: frozenset[TextEdit]) -> bool:
    return group.kind == kind and (kind != "silent" or edits <= group.edits or group.edits <= edits)


def _with_calls(record: Record, finding: Finding, others: list[Finding]) -> Finding:
    """A finding of a call, with the places of the other calls that the same cause has stopped."""
    if finding.call is None:
        return finding
    numbers = sorted(one.call for one in others if one.call is not None)
    calls = [call for n in numbers if (call := call_at(record.calls, n)) is not None]
    here = call_at(record.calls, finding.call)
    own = where(here.place) if here is not None else ""
    shown = tuple(dict.fromkeys(filter(None, (_spot(call.place, own) for call in calls))))
    more = f" and {len(shown) - _MOST_PLACES} more" if len(shown) > _MOST_PLACES else ""
    places = f": {'; '.join(shown[:_MOST_PLACES])}{more}" if shown else ""
    several = f"{len(numbers)} other calls" if len(numbers) > 1 else "one other call"
    text = f"{finding.text} The same has stopped {several}{places}."
    return without_numbers(record, replace(finding, text=text, also=tuple(numbers)))


def _spot(place: Place, known: str) -> str:
    """Where a call was made. If the line itself is known, only from where: ``from In[12], line 17``."""
    outer = outer_at(place)
    if where(place) == known and outer is not None and f"In[{outer[0]}], line {outer[1]}" != known:
        return f"from In[{outer[0]}], line {outer[1]}"
    return called_at(place)
