"""Cut texts to a length, if possible between words, with a mark; of an edit the changed part stays visible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

__all__ = ["cut", "cut_edit"]

_BEFORE = 20  # characters that stay visible before a change
_BEHIND = 4  # that are not worth a mark in their place


def cut(text: str, most: int) -> str:
    """`text` in at most `most` characters. Only a word that takes two thirds of them is cut itself."""
    if len(text) <= most:
        return text
    space = text.rfind(" ", 0, most - 1)  # room for a space and the mark
    return f"{text[:space].rstrip()} …" if space * 3 > most else f"{text[: most - 1]}…"


def cut_edit(lines: Sequence[str], most: int) -> list[str]:
    """Lines of an edit (``- old``, ``+ new``) in at most `most` characters each, so that what changes is visible."""
    cut_lines: list[str] = []
    for changes, run in groupby(lines, key=lambda line: line[:1] in "+-"):
        block = list(run)
        partners = _partners(block) if changes else {}
        cut_lines += [_around(line, partners.get(at), most) for at, line in enumerate(block)]
    return cut_lines


def _partners(block: Sequence[str]) -> dict[int, str]:
    """For each line of an edit its counterpart: the first removed line and the first added one, and so on."""
    old, new = ([at for at, line in enumerate(block) if line.startswith(sign)] for sign in "-+")
    pairs = list(zip(old, new))
    return {a: block[b] for a, b in pairs} | {b: block[a] for a, b in pairs}


def _around(line: str, partner: str | None, most: int) -> str:
    if len(line) <= most or line[:1] not in "+-":
        return cut(line, most)
    sign, text, other = line[:2], line[2:], partner[2:] if partner is not None else ""
    first = next((at for at, (a, b) in enumerate(zip(text, other)) if a != b), min(len(text), len(other)))
    room = most - 3
    from_ = max(0, min(first - _BEFORE, len(text) - room))  # so that the rest still fills the line
    if from_:
        space = text.find(" ", from_, first)
        from_ = space + 1 if space >= 0 else from_
    head = f"{sign}…" if from_ else sign
    end = len(text) - _alike_at_end(text[first:], other[first:])  # behind the last difference
    if end <= from_ + room:
        return cut(f"{head}{text[from_:]}", most)
    end = len(text) if len(text) - end <= _BEHIND else end
    half = (room - 2) // 2
    return f"{head}{text[from_ : from_ + half]}…{text[end - half : end]}{'…' if end < len(text) else ''}"


def _alike_at_end(a: str, b: str) -> int:
    """How many characters at the end of two texts are equal."""
    return next((n for n, (x, y) in enumerate(zip(reversed(a), reversed(b))) if x != y), min(len(a), len(b)))
