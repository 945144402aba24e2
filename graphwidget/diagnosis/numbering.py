"""Numbers for cells without an execution count (a script under `track()`, marimo), for the time of a diagnosis.

A diagnosis finds the text of a place by the number of its cell. Such runs get a number below zero; in the texts of
findings ``In[-1], line 4`` becomes ``line 4`` again.
"""

from __future__ import annotations

import re
from dataclasses import replace

from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record, Snapshot, Write

_LINE = re.compile(r"In\[-\d+\], line ")
_CELL = re.compile(r"In\[-\d+\]")


def with_numbers(record: Record) -> Record:
    """The record with a number for each run that has none; the same one where all have."""
    if all(run.cell is not None for run in record.runs.values()):
        return record
    numbers = _Numbers(record)
    return replace(
        record,
        snapshot=numbers.graph(record.snapshot),
        calls=tuple(map(numbers.call, record.calls)),
        writes=tuple(map(numbers.write, record.writes)),
        hidden=tuple(map(numbers.write, record.hidden)),
        idle=tuple(map(numbers.write, record.idle)),
        runs={n: numbers.run(run) for n, run in record.runs.items()},
    )


def without_numbers(finding: Finding) -> Finding:
    """The finding without the numbers that `with_numbers` gave."""
    fixes = tuple(map(_fix_without, finding.fixes))
    made, modified = _place_without(finding.made_at), _place_without(finding.modified_at)
    text, headline = _said(finding.text), _said(finding.headline)
    return replace(finding, text=text, headline=headline, made_at=made, modified_at=modified, fixes=fixes)


def _fix_without(fix: Fix) -> Fix:
    at = fix.at if fix.at is None or fix.at[0] >= 0 else None
    edits = tuple(edit if (edit.cell or 0) >= 0 else replace(edit, cell=None) for edit in fix.edits)
    return replace(fix, text=_said(fix.text), price=_said(fix.price), at=at, edits=edits)


def _place_without(place: Place | None) -> Place | None:
    if place is None:
        return None
    outer = place.outer_cell if (place.outer_cell or 0) >= 0 else None
    return replace(place, cell=place.cell if (place.cell or 0) >= 0 else None, outer_cell=outer)


def _said(text: str) -> str:
    return _CELL.sub("this code", _LINE.sub("line ", text)) if "In[-" in text else text


class _Numbers:
    """The numbers that runs have meanwhile."""

    def __init__(self, record: Record) -> None:
        self._of = {n: -n - 1 for n, run in record.runs.items() if run.cell is None}
        self._texts = {n: record.runs[n].source for n in self._of}
        self._places: dict[Place, Place] = {}

    def run(self, run: CellRun) -> CellRun:
        return replace(run, cell=self._of.get(run.run, run.cell), error_place=self._known(run.error_place))

    def place(self, place: Place) -> Place:
        found = self._places.get(place)
        if found is None:
            found = self._places[place] = self._numbered(place)
        return found

    def _numbered(self, place: Place) -> Place:
        number = self._of.get(place.run) if place.run is not None else None
        if number is None or place.outer_cell is not None:
            return place
        outer = number if place.outer_line is not None else None
        # The innermost line may belong to another cell: compare the texts.
        text = source.line_text(self._texts[place.run or 0], place.line)
        inner = number if place.cell is None and place.line is not None and text == place.source.strip() else place.cell
        return replace(place, cell=inner, outer_cell=outer)

    def _known(self, place: Place | None) -> Place | None:
        return self.place(place) if place is not None else None

    def graph(self, graph: Snapshot) -> Snapshot:
        return replace(graph, places=tuple(map(self.place, graph.places)))

    def write(self, write: Write) -> Write:
        return replace(write, place=self.place(write.place))

    def call(self, call: BackwardCall) -> BackwardCall:
        graph = self.graph(call.graph) if call.graph is not None else None
        place, failed = self.place(call.place), self._known(call.failed_place)
        return replace(call, place=place, failed_place=failed, graph=graph)
