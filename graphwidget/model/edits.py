"""Changes of program text, as data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Position", "TextEdit"]

Position = tuple[int, int]  # line from 1, column from 0


@dataclass(frozen=True)
class TextEdit:
    """Replace the text from `start` to `end` by `new`.

    Positions are (line, column) in the text before any edit: lines count from 1, columns are characters and count from
    0, the end is exclusive. ``start == end`` inserts.

    Attributes
    ----------
    cell
        The number by which records know the cell, as in `Fix.at`. None: code in a file, or a cell without a number.
    file
        The path of a file, for code that is not in a cell.
    """

    start: Position
    end: Position
    new: str
    cell: int | None = None
    file: str | None = None
