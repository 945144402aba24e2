"""Edits of a text that other edits have changed, as edits of the text as it was."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from graphwidget.diagnosis.source.edits.text_edit import Edits, Position, apply, in_order, offset_of, offsets
from graphwidget.model import TextEdit

__all__ = ["moved_back"]


def moved_back(text: str, first: Iterable[TextEdit], second: Iterable[TextEdit]) -> Edits | None:
    """Edits of the text that the first have written, as edits of the text itself; None: they change what is new in it.

    Raises
    ------
    ValueError
        As `apply`.
    """
    first = in_order(first)
    starts, later = offsets(text), offsets(apply(text, first))
    replaced = [(offset_of(starts, one.start), offset_of(starts, one.end), len(one.new)) for one in first]
    found: list[TextEdit] = []
    for edit in second:
        ends = [_before_edits(offset_of(later, one), replaced) for one in (edit.start, edit.end)]
        if None in ends:
            return None
        found.append(replace(edit, start=_position(starts, ends[0] or 0), end=_position(starts, ends[1] or 0)))
    return tuple(found)


def _before_edits(offset: int, replaced: Iterable[tuple[int, int, int]]) -> int | None:
    """Where an offset behind some edits was before them; None: in what they have written."""
    shift = 0
    for first, last, new in replaced:
        if offset <= first + shift:
            break
        if offset < first + shift + new:
            return None
        shift += new - (last - first)
    return offset - shift


def _position(starts: Sequence[int], offset: int) -> Position:
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1]
