"""How the lines of a text become those of another, to be read by a person."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

__all__ = ["difference"]


def difference(old: list[str], new: list[str], *, from_the_end: bool) -> list[tuple[str, str]]:
    """The steps from one text to the other. A line that moves down is shown by itself, not by the lines it passes."""
    steps: list[tuple[str, str]] = []
    for code, i, j, k, m in _opcodes(old, new, from_the_end):
        if code == "equal":
            steps += [(" ", line) for line in old[i:j]]
        else:
            while i < j and k < m and old[i] == new[k]:  # blank lines match nothing
                steps.append((" ", old[i]))
                i, k = i + 1, k + 1
            same = 0
            while same < min(j - i, m - k) and old[j - 1 - same] == new[m - 1 - same]:
                same += 1
            steps += [("-", line) for line in old[i : j - same]] + [("+", line) for line in new[k : m - same]]
            steps += [(" ", line) for line in old[j - same : j]]
    return steps


def _opcodes(old: list[str], new: list[str], from_the_end: bool) -> Iterator[tuple[str, int, int, int, int]]:
    """What `SequenceMatcher` finds; of equally long matches, the last instead of the first, if so wished."""
    if not from_the_end:
        yield from SequenceMatcher(_is_blank, old, new, autojunk=False).get_opcodes()
        return
    found = SequenceMatcher(_is_blank, old[::-1], new[::-1], autojunk=False).get_opcodes()
    a, b = len(old), len(new)
    yield from ((code, a - j, a - i, b - m, b - k) for code, i, j, k, m in reversed(found))


def _is_blank(line: str) -> bool:
    return not line.strip()
