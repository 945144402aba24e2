"""Files whose text on the disk is not that of the code that ran: a finding in such a file says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace

from graphwidget.model import CellRun, Finding, Fix, Place, Record

__all__ = ["sentence", "with_edited_files"]


def sentence(run: CellRun) -> str:
    """What is to be said of a file; empty if its text is that of the code that ran."""
    if run.file is not None and run.edited:
        return (
            f"The text of {run.file} is not that of the code that ran, as after an edit, or where `exec` made the "
            "code. The lines are those of what ran."
        )
    if run.file is not None and run.changed:
        return f"{run.file} has been edited since it was imported: lines and text are those of what ran."
    return ""


def with_edited_files(record: Record, finding: Finding) -> Finding:
    """The finding, with a sentence for each of its files that has been edited, and no edits of a text that is gone."""
    stale = {run.run: words for run in record.runs.values() if (words := sentence(run))}
    if not stale:
        return finding
    cells = {run.cell: run.run for run in record.runs.values() if run.run in stale}
    found = [run for place in _places(finding) if (run := place.inner_run) in stale]
    found += [cells[edit.cell] for fix in finding.fixes for edit in fix.edits if edit.cell in cells]
    if not found:
        return finding
    said = dict.fromkeys(stale[run] for run in found if run is not None)
    whole = " ".join(part for part in (finding.text, *said) if part)
    return replace(finding, text=whole, fixes=tuple(_without_edits(fix, cells) for fix in finding.fixes))


def _without_edits(fix: Fix, cells: dict[int | None, int]) -> Fix:
    """A fix that shows what to change, but not as positions in a text that is not there any more."""
    return replace(fix, edits=()) if any(edit.cell in cells for edit in fix.edits) else fix


def _places(finding: Finding) -> Iterable[Place]:
    return (value for one in fields(finding) if isinstance(value := getattr(finding, one.name), Place))
