"""Encoding of columns of numbers and tables of texts: as short as JSON text can be, and fast to write and read.

A column of numbers is one text. It holds the difference of each number to the one before, in as many characters as
needed: one for a difference from -16 to 15. A state is one character. A node or an edge takes about 10 bytes, and the
page reads them in one pass without an object for each node.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, islice
from operator import sub
from typing import TypeVar

__all__ = ["Numbered", "Strings", "column", "in_state", "looked_up", "marks", "small"]

T = TypeVar("T")

_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# From 0 on, as `column` writes them.
_SMALL = bytes.maketrans(bytes(range(16)), _BASE64[::2][:16].encode())


class Numbered(defaultdict[T, int]):
    """Numbers values from 0, in the order of their first use."""

    def __init__(self, known: Iterable[T] = ()) -> None:
        super().__init__(self.__len__, ((thing, i) for i, thing in enumerate(known)))

    def many(self, things: Iterable[T]) -> list[int]:
        return list(map(self.__getitem__, things))


class Strings:
    """The string table while a message is written."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.index = Numbered(known)

    def __call__(self, text: str) -> int:
        return self.index[text]

    def many(self, texts: Iterable[str]) -> list[int]:
        return self.index.many(texts)

    def known(self, text: str | None) -> int | None:
        """None stays None: unknown."""
        return None if text is None else self.index[text]

    def since(self, known: int) -> list[str]:
        return list(islice(self.index, known, None))


class _Characters(dict[int, str]):
    """A difference as characters of base 64, five bits in each, the lowest first; 32 is added to all but the last.

    The lowest bit of all is the sign, as in source maps. Small differences, which most are, are cached.
    """

    def __missing__(self, difference: int) -> str:
        left = 2 * difference if difference >= 0 else -2 * difference - 1
        text = ""
        while left > 31:
            text += _BASE64[32 + left % 32]
            left //= 32
        text += _BASE64[left]
        if len(text) <= 3:
            self[difference] = text
        return text


_characters = _Characters().__getitem__


def column(values: array[int] | list[int]) -> str:
    """Numbers as the differences to the one before (the first: to 0), one after the other."""
    if values and values == values[:1] * len(values):  # places, modules and the like often are all the same
        return _characters(values[0]) + _characters(0) * (len(values) - 1)
    return "".join(map(_characters, map(sub, values, chain((0,), values))))


def marks(meant: bytes) -> str:
    """Positions of the ones in a sequence of 0 and 1.

    For each run of ones: the number of zeros before it, then, if there is more than one, how many more (negative).
    """
    text, at = "", 0
    for run in _ONES.finditer(meant):
        text += _characters(run.start() - at)
        if len(run[0]) > 1:
            text += _characters(1 - len(run[0]))
        at = run.end()
    return text


_ONES = re.compile(b"\\x01+")


def looked_up(table: Sequence[int], column: Iterable[int]) -> list[int]:
    """-1 gives the last of the table."""
    return list(map(table.__getitem__, column))


def small(column: bytearray) -> str:
    """Numbers from 0 to 15 as they are, not as differences."""
    return column.translate(_SMALL).decode("ascii")


@cache
def in_state(*states: int) -> bytes:
    """A table for `translate`: 1 for these states, else 0."""
    return bytes(state in states for state in range(256))
