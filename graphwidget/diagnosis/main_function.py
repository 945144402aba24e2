"""A program that is all in one function, as if the lines of that function were the program's.

``def main(): ...`` and ``if __name__ == "__main__": main()``: what builds a graph is looked for among the lines of the
code that ran, and all of these are in `main`. Its text is read that way (`source.parse`); so are the recorded places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from graphwidget.diagnosis.changed_places import ChangedPlaces
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import Place, Record, Sight

__all__ = ["seen_from_main"]


def seen_from_main(record: Record) -> Record:
    """The record with the lines of each main function as those of its program; the same one where there is none."""
    found = {n: main for n, run in record.runs.items() if (main := source.main_function(run.source)) is not None}
    record = _Moved(record, found).record(record) if found else record
    line = _only_line(record)
    return _Inside(*line).record(record) if line is not None else record


def _only_line(record: Record) -> tuple[int, int] | None:
    """The run and the line that did everything by methods of one object: ``Trainer().fit()``; None: there is none."""
    spots, methods = set[tuple[int | None, int | None]](), set[int]()
    owners: list[ast.ClassDef | None] = []
    for place in _places(record):
        run = record.runs.get(place.run) if place.run is not None else None
        frames = (*place.stack, place)
        if place.line is None:
            continue
        found = source.function_at(run.source, frames[1].line or 0) if run is not None and len(frames) > 1 else None
        if run is None or found is None or frames[0].cell != run.cell or frames[1].cell != run.cell:
            return None
        if frames[0].line != place.outer_line:
            return None
        spots.add((place.run, place.outer_line))
        methods.add(found[1].lineno)
        owners.append(found[0])
    if len(spots) != 1 or owners[0] is None or any(one is not owners[0] for one in owners):
        return None
    number, line = spots.pop()
    names = [one.name for one in owners[0].body if isinstance(one, ast.FunctionDef) and one.lineno in methods]
    if number is None or line is None or not _calls_each_once(record.runs[number].source, line, owners[0].name, names):
        return None
    return number, line


def _calls_each_once(text: str, line: int, owner: str, methods: list[str]) -> bool:
    """Whether a line makes an object of a class and calls one method of it, in no loop: ``Trainer().fit()``."""
    found = source.statements_at(text, line)[-1:]
    if not found or hasattr(found[0], "body") or source.loops_around(text, line):
        return False
    chains = [
        node.func.attr
        for node in ast.walk(found[0])
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Call)
        and source.last_name(ast.unparse(node.func.value.func)) == owner
    ]
    return len(chains) == 1 and methods in (["__init__", *chains], chains)


def _places(record: Record) -> Iterator[Place]:
    """The places of all that was recorded."""
    graphs = [record.snapshot, *(look.graph for look in record.looks), *(call.graph for call in record.calls)]
    for graph in graphs:
        yield from graph.places if graph is not None else ()
    yield from (call.place for call in record.calls)
    yield from (write.place for write in (*record.writes, *record.hidden, *record.idle))


class _Inside(ChangedPlaces):
    """Places without the line that called the methods, which stay methods."""

    def __init__(self, run: int, line: int) -> None:
        super().__init__()
        self._spot = run, line

    def changed(self, place: Place) -> Place:
        return _without_outermost(place) if (place.run, place.outer_line) == self._spot and place.stack else place


def _without_outermost(place: Place) -> Place:
    """A place as if the outermost line, which called the others, were none of the user's."""
    own = (*place.stack, place)[1]
    return replace(place, outer_cell=own.cell, outer_line=own.line, outer_source=own.source, stack=place.stack[1:])


class _Moved(ChangedPlaces):
    """Places without the line that called the main function."""

    def __init__(self, record: Record, mains: dict[int, source.Main]) -> None:
        super().__init__()
        self._mains = mains
        self._cells = {n: record.runs[n].cell for n in mains}

    def changed(self, place: Place) -> Place:
        main = self._mains.get(place.run) if place.run is not None else None
        if main is None or place.run is None or place.outer_line != main.called_at or not place.stack:
            return place
        own = (*place.stack, place)[1]
        if own.cell != self._cells[place.run] or not main.holds(own.line):
            return place
        return replace(place, outer_cell=own.cell, outer_line=own.line, outer_source=own.source, stack=place.stack[1:])

    def sight(self, sight: Sight) -> Sight:
        place = sight.place
        own = place.run in self._mains and place.line is not None and self._is_in_main(place)
        moved = super().sight(sight)
        return replace(moved, in_function=False, local=frozenset()) if own else moved

    def _is_in_main(self, place: Place) -> bool:
        """Whether a frame at a place is that of the main function itself."""
        run = place.run if place.run is not None else -1
        main = self._mains[run]
        function = (place.function or "").rpartition(".")[2]
        return function == main.function.name and place.cell == self._cells[run] and main.holds(place.line)
