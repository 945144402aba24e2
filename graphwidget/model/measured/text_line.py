"""A line of a program's text."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TextLine"]


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a cell (its number) or of a file (its path as in `Place.file`)."""

    cell: int | None
    file: str | None
    line: int
