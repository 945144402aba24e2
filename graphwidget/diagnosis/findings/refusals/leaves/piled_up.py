"""An error about tensors that all pile up: the line that keeps their graphs is its cause, and told once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import short, where
from graphwidget.model import Finding, Fix, Place

__all__ = ["with_causes"]


def with_causes(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings, where one that raised because of what piles up names the lines of that, and their fix first.

    A copy of a model fails because its running statistics keep graphs: the copy can do without them, and the next pass
    adds to them again.
    """
    piles = [one for one in findings if one.kind == "leak" and one.fixes and one.fixes[0].edits]
    told: set[int] = set()
    changed: dict[int, Finding] = {}
    for one in findings:
        own = set(one.uids) if one.severity == "error" and one.kind == "refused" and one.call is None else set()
        causes = [pile for pile in piles if own & set(pile.uids)]
        if own and own <= {uid for pile in causes for uid in pile.uids}:
            told |= set(map(id, causes))
            changed[id(one)] = _because_of(one, causes)
    yield from (changed.get(id(one), one) for one in findings if id(one) not in told)


def _because_of(one: Finding, causes: list[Finding]) -> Finding:
    places = [pile.made_at for pile in causes if pile.made_at is not None and where(pile.made_at)]
    lines = dict.fromkeys(map(_line, sorted(places, key=lambda place: (place.cell or 0, place.line or 0))))
    why = f" {' and '.join(lines)} {'keep' if len(lines) > 1 else 'keeps'} a graph there, more with each pass."
    return replace(one, text=one.text + (why if lines else ""), fixes=(_of_all(causes), *one.fixes))


def _line(place: Place) -> str:
    """A line and where it is; of a statement of several lines only where."""
    return f"{short(place.source)} ({where(place)})" if syntax.statement_of(place.source) else where(place)


def _of_all(causes: list[Finding]) -> Fix:
    """The first fixes of all causes as one."""
    first, *others = (pile.fixes[0] for pile in causes)
    for other in others:
        edits = dict.fromkeys((*first.edits, *other.edits))
        if len(edits) > len(first.edits):
            text = f"{first.text} {other.text}"
            first = replace(
                first,
                text=text,
                edits=tuple(text_edit.in_order(edits)),
                verified=first.verified and other.verified,
                starves=tuple(dict.fromkeys((*first.starves, *other.starves))),
            )
    return first
