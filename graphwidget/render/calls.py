"""The table of calls in text: one line per call; equal calls of a loop share a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from graphwidget.model import BackwardCall, bytes_text
from graphwidget.render.words import count, function_text

__all__ = ["call_lines"]

_MOST_LINES = 100
_MOST_PARTS = 4  # of a list of numbers


def call_lines(calls: Iterable[BackwardCall]) -> Iterator[str]:
    """The lines of the table, in the order in which each of them first happened."""
    alike: dict[tuple[object, ...], list[BackwardCall]] = {}
    for call in calls:
        alike.setdefault(_key(call), []).append(call)
    groups = [part for group in alike.values() for part in _parts(group)]
    lines = [_line(group) for group in sorted(groups, key=lambda group: group[0].n)]
    width = max((len(numbers) for numbers, _ in lines[:_MOST_LINES]), default=0)
    width = min(max(width, 4), 12)
    yield from (f"{numbers:>{width}}  {words}" for numbers, words in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"{'':>{width}}  and {len(lines) - _MOST_LINES} more"


def _key(call: BackwardCall) -> tuple[object, ...]:
    """The content of a line; calls with different content get different lines."""
    place = call.place
    if place.line is None:
        return (call.n,)
    lines = (place.run, place.cell, place.file, place.line, place.outer_cell, place.outer_line)
    where = (*lines, place.iteration is None)
    return (*where, _did(call))


def _parts(group: list[BackwardCall]) -> list[list[BackwardCall]]:
    """Calls that differ only in the call that freed their tensors: always the same one, or the one k calls earlier."""
    by_call: dict[int | None, list[BackwardCall]] = {}
    by_way: dict[int | None, list[BackwardCall]] = {}
    for call in group:
        by_call.setdefault(call.freed_by, []).append(call)
        by_way.setdefault(_back(call), []).append(call)
    return list(min(by_call, by_way, key=len).values())


def _back(call: BackwardCall) -> int | None:
    return call.n - call.freed_by if call.freed_by is not None else None


def _line(group: Sequence[BackwardCall]) -> tuple[str, str]:
    """The numbers of the calls, and the text about them."""
    place = group[0].place
    where = function_text(place) if place.file is not None else place.outside
    passes = [call.place.iteration for call in group]
    loop = _iterations([n for n in passes if n is not None])
    parts = [f"{where}{loop}", place.source.strip(), _outcome(group)]
    return _numbers([call.n + 1 for call in group]), "  ".join(parts)


def _did(call: BackwardCall) -> str:
    """``ran 4 nodes, freed 2 saved tensors (24 B)``."""
    if call.result == "raised":
        return f"raised at {call.failed_node}" if call.failed_node else "raised"
    if not call.executed_count:  # a call runs one node at least
        return "ran; which nodes is not known"
    ran, freed = count(call.executed_count, "node"), count(call.freed_slots, "saved tensor")
    return f"ran {ran}, freed {freed} ({bytes_text(call.freed_bytes)})"


def _outcome(group: Sequence[BackwardCall]) -> str:
    """The same, with the call that freed the needed tensors."""
    first = group[0]
    if first.result != "raised" or first.freed_by is None:
        return _did(first)
    if all(call.freed_by == first.freed_by for call in group):
        return f"{_did(first)}, freed by call {first.freed_by + 1}"
    back = first.n - first.freed_by
    return f"{_did(first)}, freed by the call {'' if back == 1 else f'{back} calls '}before it"


def _iterations(passes: Sequence[int]) -> str:
    """``, iterations 0-59``; of an inner loop that ran several times also how often."""
    if not passes:
        return ""
    if len(passes) == 1:
        return f", iteration {passes[0]}"
    different = sorted(set(passes))
    times = f", {len(passes)} calls" if len(different) < len(passes) else ""
    word = "iterations" if len(different) > 1 else "iteration"
    return f", {word} {_numbers(different)}{times}"


def _numbers(numbers: Sequence[int]) -> str:
    """``1-60``; ``1, 3, … 119`` where the steps are equal; else parts, as far as they go: ``1-9, 11-20, … 300``."""
    step = numbers[1] - numbers[0] if len(numbers) > 2 else 0
    if step > 1 and all(b - a == step for a, b in zip(numbers, numbers[1:])) and len(numbers) > 3:
        return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"
    parts = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        row = [number for _, number in run]
        parts.append(f"{row[0]}-{row[-1]}" if len(row) > 2 else ", ".join(map(str, row)))
    if len(parts) > _MOST_PARTS:
        parts = [*parts[: _MOST_PARTS - 1], f"… {numbers[-1]}"]
    return ", ".join(parts)
