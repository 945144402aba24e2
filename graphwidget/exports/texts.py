"""The files that ran, as they are on the disk now."""

from __future__ import annotations

from pathlib import Path

from graphwidget.model import Record

__all__ = ["texts_of"]


def texts_of(record: Record) -> dict[str, str]:
    """The files that ran and lie below the working directory, if they are still what ran; with their ends of lines."""
    texts: dict[str, str] = {}
    for run in record.runs.values():
        if run.file is None or run.edited or not run.source or Path(run.file).is_absolute():
            continue
        try:
            text = Path(run.file).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        # Blank lines at the end are no part of what is kept of a text.
        if text.replace("\r\n", "\n").rstrip() == run.source.rstrip():
            texts[run.file] = text
    return texts
