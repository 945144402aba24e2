"""The first fix of a program's findings as a patch: a unified diff that ``git apply`` takes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from graphwidget.model import Finding, TextEdit

__all__ = ["patch"]

_NO_NEWLINE = "\\ No newline at end of file\n"


def patch(findings: Iterable[Finding], texts: Mapping[str, str]) -> str:
    """The patch of the first fix that edits files only; empty if there is none.

    A fix that passed its trial comes before all others, and one that did not help at all is none.

    Parameters
    ----------
    texts
        The files by their paths as edits name them, relative to where the patch is applied. A fix that edits another
        file is passed over.
    """
    fixes = [fix for finding in findings for fix in finding.fixes if not fix.failed]
    for wanted in (True, False):
        for fix in fixes:
            if wanted is not (fix.tried is not None and fix.tried.passed):
                continue
            files = list(dict.fromkeys(edit.file for edit in fix.edits))
            if files and all(file is not None and file in texts for file in files):
                return "".join(
                    line
                    for file in files
                    for line in _diff(file or "", texts[file or ""], [e for e in fix.edits if e.file == file])
                )
    return ""


def _diff(file: str, text: str, edits: list[TextEdit]) -> Iterator[str]:
    new = _edited(text, edits)
    for line in difflib.unified_diff(_lines(text), _lines(new), f"a/{file}", f"b/{file}"):
        yield line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"


def _edited(text: str, edits: list[TextEdit]) -> str:
    """The text with the edits in it, which have no order and do not overlap. New lines end as those of the text."""
    starts = [0]
    for line in _lines(text):
        starts.append(starts[-1] + len(line))
    end = "\r\n" if "\r\n" in text else "\n"
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        first, last = (starts[line - 1] + column for line, column in (edit.start, edit.end))
        text = text[:first] + edit.new.replace("\n", end) + text[last:]
    return text


def _lines(text: str) -> list[str]:
    """Lines with their ends, as `git` counts them."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
