"""Where a node was made by the record of torch's anomaly mode: for nodes that were made where nothing was recorded.

Such are nodes of a graph from before tracking began, or of a thread whose lines are not recorded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

import torch

from graphwidget.capture.lines.book import Book
from graphwidget.capture.lines.files import relative
from graphwidget.model import Place

__all__ = ["place_in"]

_TORCH = os.path.dirname(torch.__file__) + os.sep
_ENTRY = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d{1,9}), in (?P<function>.+)(?:\n +(?P<source>.+))?')


def place_in(stack: Sequence[str], book: Book) -> Place | None:
    """The innermost line of the user's own in a stack that anomaly mode stored; else the innermost outside of torch.

    What called the line, and the pass of a loop in which it ran, are left unknown. None: no entry can be read.
    """
    entries = [found for text in reversed(stack) if (found := _ENTRY.match(text)) is not None]
    for entry in entries:
        name, line = entry["file"], int(entry["line"])
        cell = book.files[name] if name in book.files else book.of_name(name)
        known = cell is not None and 0 < line + cell.shift <= len(cell.lines)
        place = book.line_at(cell.base + cell.shift + line) if cell is not None and known else None
        if place is not None and _fits(place, entry):
            return replace(place, anomaly=True)
        if cell is not None or (book.is_own is not None and book.is_own(name)):
            return _as_written(entry)
    outside = [entry for entry in entries if not entry["file"].startswith(_TORCH)]
    return _as_written((outside or entries)[0]) if entries else None


def _fits(place: Place, entry: re.Match[str]) -> bool:
    """Whether the line that is known is the one that ran: a file may have been edited in between."""
    return not entry["source"] or place.source == entry["source"].strip()


def _as_written(entry: re.Match[str]) -> Place:
    function = entry["function"] if not entry["function"].startswith("<") else None
    source = (entry["source"] or "").strip()
    return Place(None, int(entry["line"]), source, file=relative(entry["file"]), function=function, anomaly=True)
