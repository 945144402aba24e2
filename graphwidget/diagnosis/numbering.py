"""Numbers for files, and for cells without an execution count (marimo), during a diagnosis.

A diagnosis finds the text of a place by the number of its cell, and treats a file as a cell that has run. Such runs get
a number below zero. In the texts of findings ``In[-4], line 15`` becomes ``proj/model.py:15``, or ``line 15`` where the
code is in no file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace

from graphwidget.diagnosis.changed_places import ChangedPlaces
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import CellRun, Finding, Fix, Place, Record, TextEdit

__all__ = ["with_numbers", "without_numbers"]

_CELL = re.compile(r"In\[(-\d+)\](?:, line (\d+))?")


def with_numbers(record: Record) -> Record:
    """The record with a number for each run that has none; the same one where all have."""
    if all(run.cell is not None for run in record.runs.values()):
        return record
    return _Numbers(record).record(record)


def without_numbers(record: Record, finding: Finding) -> Finding:
    """The finding without the numbers that `with_numbers` gave to the runs of a record."""
    runs = {run.cell: run for run in record.runs.values() if run.cell is not None and run.cell < 0}
    return _Names(runs).finding(finding) if runs else finding


class _Names:
    """The names behind the numbers: files; None: a cell without a number."""

    def __init__(self, runs: Mapping[int, CellRun]) -> None:
        self._runs = runs
        self._files = {number: run.file for number, run in runs.items()}

    def finding(self, finding: Finding) -> Finding:
        places = {one.name: value for one in fields(finding) if isinstance(value := getattr(finding, one.name), Place)}
        return replace(
            finding,
            text=self._text(finding.text),
            headline=self._text(finding.headline),
            fixes=tuple(map(self._fix, finding.fixes)),
            **{name: self._place(place) for name, place in places.items()},  # type: ignore[arg-type]
        )

    def _fix(self, fix: Fix) -> Fix:
        at = fix.at if fix.at is None or fix.at[0] >= 0 else None
        edits = tuple(map(self._edit, fix.edits))
        return replace(fix, text=self._text(fix.text), price=self._text(fix.price), at=at, edits=edits)

    def _edit(self, edit: TextEdit) -> TextEdit:
        if edit.cell is None or edit.cell >= 0:
            return edit
        return replace(edit, cell=None, file=self._files.get(edit.cell))

    def _place(self, place: Place) -> Place:
        return replace(
            place,
            cell=_above_zero(place.cell),
            outer_cell=_above_zero(place.outer_cell),
            file=place.file or self._files.get(place.cell or 0),
            outer_file=place.outer_file or self._files.get(place.outer_cell or 0),
            stack=tuple(map(self._place, place.stack)),
        )

    def _text(self, text: str) -> str:
        return _CELL.sub(self._named, text) if "In[-" in text else text

    def _named(self, found: re.Match[str]) -> str:
        """``net.py:8``; of a line in a function, ``net.py:8 in Net.forward``."""
        run, line = self._runs.get(int(found[1])), found[2]
        if run is None or run.file is None:
            return f"line {line}" if line else "this code"
        if not line:
            return run.file
        function = source.qualified_name_at(run.source, int(line))
        return f"{run.file}:{line} in {function}" if function else f"{run.file}:{line}"


def _above_zero(number: int | None) -> int | None:
    return number if number is None or number >= 0 else None


class _Numbers(ChangedPlaces):
    """The numbers of the runs during a diagnosis."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        unnumbered = [n for n, run in record.runs.items() if run.cell is None]
        self._of = {n: -2 * n - 1 if n >= 0 else 2 * n for n in unnumbered}
        self._texts = {n: record.runs[n].source for n in unnumbered}
        self._files = {n: record.runs[n].file for n in unnumbered}

    def run(self, run: CellRun) -> CellRun:
        return replace(super().run(run), cell=self._of.get(run.run, run.cell))

    def changed(self, place: Place) -> Place:
        outer = place.outer_cell
        if outer is None and place.outer_line is not None and place.run is not None:
            outer = self._of.get(place.run)
        inner = place.cell
        if inner is None and place.line is not None:
            inner = self._of.get(place.inner_run) if place.inner_run is not None else self._cell_of(place)
        stack = tuple(map(self.place, place.stack))
        return replace(place, cell=inner, outer_cell=outer, stack=stack)

    def _cell_of(self, place: Place) -> int | None:
        """The number of a line that may belong to another cell than the one that ran, found by its text."""
        run = place.run if place.run is not None else -1
        same = place.file is None or place.file == self._files.get(run)
        text = source.line_text(self._texts[run], place.line) if same and run in self._texts else None
        return self._of[run] if text == place.source.strip() else None
