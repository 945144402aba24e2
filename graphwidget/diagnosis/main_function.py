"""A program that is all in one function, as if the lines of that function were the program's.

``def main(): ...`` and ``if __name__ == "__main__": main()``: what builds a graph is looked for among the lines of the
code that ran, and all of these are in `main`. Its text is read that way (`source.parse`); so are the recorded places.
"""

from __future__ import annotations

from dataclasses import replace

from graphwidget.diagnosis.changed_places import ChangedPlaces
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import Place, Record, Sight

__all__ = ["seen_from_main"]


def seen_from_main(record: Record) -> Record:
    """The record with the lines of each main function as those of its program; the same one where there is none."""
    found = {n: main for n, run in record.runs.items() if (main := source.main_function(run.source)) is not None}
    return _Moved(record, found).record(record) if found else record


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
