"""Where each node was made: cell, line, iteration and module call, found by its sequence number.

`tracers.py` and `modules.py` record where each stretch of numbers was used. This file opens and closes cells and
looks places up. A number that was not recorded, or that two threads could have used, has no place: never a guess.
"""

from __future__ import annotations

import sys
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from types import CodeType, FrameType
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.lines.anomaly import place_in
from graphwidget.capture.lines.book import Book
from graphwidget.capture.lines.cells import MAGIC_FILES, Cell, Scope
from graphwidget.capture.lines.files import SourceFile
from graphwidget.capture.lines.frames import LineTracer, Watch
from graphwidget.capture.lines.modules import ModuleTracer
from graphwidget.capture.lines.ranges import Ranges
from graphwidget.capture.lines.tracers import line_tracer
from graphwidget.model import ModuleCall, Place

__all__ = ["BUTTON", "NOWHERE", "Provenance"]

MAX_KNOWN = 20_000  # numbers whose places are remembered besides those of the current graph

NOWHERE = Place(None, None)
BUTTON = Place(None, None, button=True)


_Found = tuple["array[int]", list[tuple[int, int, int]]]  # a column of indices and its table


class Provenance:
    """Places of nodes and of calls.

    Parameters
    ----------
    count
        Returns the next sequence number of the calling thread.
    code_names
        For code of cells that ran before the start; see `cells.Book`.
    watched, watch
        Which lines of a scope are watched, and the function called before they run; see `LineTracer`.
    is_own
        Whether a file name is that of a file of the user's own, whose code is recorded as that of cells is.
    problem
        Called with an exception of our own.
    """

    def __init__(
        self,
        count: Callable[[], int],
        *,
        code_names: Mapping[str, object] | Callable[[str], object] | None = None,
        watched: Callable[[Scope], set[int]] | None = None,
        watch: Watch | None = None,
        is_own: Callable[[str], bool] | None = None,
        problem: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.book = Book(code_names, watched, is_own)
        self.problem = problem
        self.lines: LineTracer = line_tracer(count, self.book, problem, watch)
        self.modules = ModuleTracer(
            count,
            problem,
            is_own=lambda code: self.book.scope(code) is not None,
            pauses=(self.lines.pause, self._pause_or_reclaim, self.lines.unpause) if self.lines.slow else None,
        )
        self._open: list[tuple[Cell, int]] = []  # running cells and their threads, innermost last
        self._places: dict[tuple[int, int, int], Place] = {}
        self._looked_up: tuple[Sequence[int], list[tuple[int, int, int]], _Found, _Found] | None = None
        self._line_cache, self._module_cache = _Cache(), _Cache()
        self._module_calls: dict[tuple[int, int, int], ModuleCall] = {}

    def start(self) -> None:
        """Install tracers and hooks. Lines of a cell are traced from `begin_cell` on."""
        self.lines.install()
        self.modules.start()

    def stop(self) -> None:
        """Restore tracers and hooks, also of cells that are still running."""
        while self._open:
            self.end_cell()
        self.modules.stop()
        self.lines.uninstall()

    def begin_cell(
        self,
        number: int | None,
        source: str,
        *,
        cell_id: str | None = None,
        run: int | None = None,
        filename: str | None = None,
        code: str | None = None,
        frame: FrameType | None = None,
        script: CodeType | None = None,
    ) -> Cell:
        """A cell is about to run in this thread.

        Parameters
        ----------
        number
            Execution count.
        source
            The cell as the user sees it.
        filename
            Name under which its code will be compiled.
        code
            The source as it is compiled, where magics changed it.
        frame
            A frame of the cell that is running already (`gw.track` in a script).
        script
            Code of the file `filename`, where that runs itself and is no cell.
        """
        around = self._open[-1][0] if self._open and self._open[-1][1] == threading.get_ident() else None
        part = around is not None and around.number == number and around.source.rstrip().endswith(source.rstrip())
        if part and around is not None and around.source.rstrip() != source.rstrip():
            # The body of %%capture or a similar magic: the same cell, a few lines further down.
            head = len(around.source.rstrip().splitlines()) - len(source.rstrip().splitlines())
            whole = "\n".join(around.lines[:head] + source.splitlines())
            cell = self.book.open(filename or "", number, around.cell_id, whole, around.run, code or source)
            cell.shift, cell.inside = head, True
        else:
            file = SourceFile(filename, script) if filename and script is not None else None
            cell = self.book.open(filename or "", number, cell_id, source, run, code, file)
        for name in MAGIC_FILES:
            self.book.bind(name, cell)
        state = self.lines.boundary()
        if around is None:
            state.top = None  # what runs the cells is not the user's own code
        self.modules.start()
        self.lines.start()
        self._open.append((cell, threading.get_ident()))
        if frame is not None:
            self.lines.resume(frame)
        return cell

    def _pause_or_reclaim(self) -> Any:
        """Pause line tracing. If a step of an optimizer raised and left it off, turn it on first."""
        paused = self.lines.pause()
        if paused is None and self.lines.lost:
            self.lines.reclaim(sys._getframe(2))
            paused = self.lines.pause()
        return paused

    def end_cell(self) -> None:
        """The innermost running cell has ended, normally or with an error."""
        if not self._open:
            return
        self._open.pop()
        if self.lines.lost:
            self.lines.skip()
        self.lines.boundary()
        self.lines.stop()
        if self._open:
            for name in MAGIC_FILES:
                self.book.bind(name, self._open[-1][0])
        else:
            state = self.lines.state()
            state.top = None

    def forget_files(self) -> None:
        """Ask again which files are the user's own. Code that was recorded keeps its places."""
        self.book.forget_files()
        self.lines.ask_again()

    def cell_frames(self, frame: FrameType | None) -> list[FrameType]:
        """The running frames of cells, from `frame` outwards."""
        return [one for one, _ in self.book.own_frames(frame)]

    @property
    def cell(self) -> Cell | None:
        """The running cell."""
        return self._open[-1][0] if self._open else None

    def where(self, frame: FrameType | None) -> Place:
        """The place of code that is running, from `frame` outwards."""
        key = self.lines.where(frame)
        return NOWHERE if key is None else self.place(key)

    def place(self, key: Place | tuple[int, int, int]) -> Place:
        """The place of a key of `lines`. A place is returned as it is."""
        if isinstance(key, Place):
            return key
        place = self._places.get(key)
        if place is None:
            if len(self._places) > 20_000:
                self._places.clear()
            place = self._places[key] = self.book.place(*key)
        return place

    def place_of(self, seq: int, name: str = "") -> Place | None:
        """Where the node with this sequence number was made; None: unknown."""
        key = self.lines.find(seq) if seq >= 0 else None
        return None if key is None else self.place(key)

    def recorded_by_anomaly_mode(self, node: Any) -> Place | None:
        """Where anomaly mode has seen a live node being made; None: it was off, or nothing is known."""
        return place_in(ti.forward_stack(node), self.book)

    def module_of(self, seq: int, name: str = "") -> ModuleCall | None:
        """The module call in which the node was made; None: none, or unknown."""
        key = self.modules.find(seq) if seq >= 0 else None
        return None if key is None else self.modules.describe(*key)

    def lookup(
        self, seqs: Sequence[int], names: Sequence[str] = ()
    ) -> tuple[array[int], tuple[Place, ...], array[int], tuple[ModuleCall, ...]]:
        """Places and module calls of many nodes: two columns of indices (-1: unknown) and their tables."""
        self.lines.boundary()
        marks = [ranges.mark() for ranges in self._ranges()]
        if self._looked_up is None or self._looked_up[0] is not seqs or self._looked_up[1] != marks:
            places = self._line_cache.column(seqs, self.lines.find, self.lines.threads)
            modules = self._module_cache.column(seqs, self.modules.find, self.modules.threads)
            self._looked_up = seqs, marks, places, modules
        _, _, (place_column, place_keys), (module_column, module_keys) = self._looked_up
        return (
            place_column,
            tuple(self.place(key) for key in place_keys),
            module_column,
            tuple(self.modules.describe(*key) for key in module_keys),
        )

    def _ranges(self) -> list[Ranges]:
        """The stretches of all threads, of lines and of modules."""
        return [*(state.ranges for state in self.lines.threads), *(state.ranges for state in self.modules.threads)]

    def name_modules(self, namespaces: Iterable[Mapping[str, Any]]) -> None:
        """Find the user's names for modules that were called since the last time."""
        self.modules.name(namespaces)

    def make_room(self, live: Callable[[], Sequence[int]]) -> None:
        """Keep memory bounded. `live` returns the ascending sequence numbers of nodes that are alive."""
        self.lines.make_room(live)
        self.modules.make_room(live)

    @property
    def full(self) -> bool:
        """Whether `make_room` should be called."""
        return any(ranges.full for ranges in self._ranges())


class _Cache:
    """A cache of looked-up sequence numbers. It stays valid as long as only one thread makes nodes."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, int, int], int] = {}  # key -> its number
        self._found: dict[int, int] = {}  # sequence number -> number of its key, -1: unknown
        self._forgot = 0

    def column(
        self, seqs: Sequence[int], find: Callable[[int], tuple[int, int, int] | None], threads: Sequence[Any]
    ) -> _Found:
        """Look sequence numbers up; equal keys share one entry of the table.

        A snapshot lists nodes nearly in the order of their numbers. So while only one thread has made nodes, a number
        is mostly in the same stretch as the number before it.
        """
        if not threads:
            return array("i", [-1]) * len(seqs), []
        alone = threads[0].ranges if len(threads) == 1 else None
        forgot = 0 if alone is None else alone.mark()[0]
        if alone is None or forgot != self._forgot or len(self._found) > MAX_KNOWN + 2 * len(seqs):
            self._keys, self._found, self._forgot = {}, {}, forgot
        keys, found = self._keys, list(map(self._found.get, seqs, repeat(-1)))
        first, last, number = 0, 0, -1
        for at, seq in enumerate(seqs):
            if found[at] < 0 <= seq:
                if not first <= seq < last:
                    key = find(seq)
                    number = -1 if key is None else keys.setdefault(key, len(keys))
                    first, last = (0, 0) if alone is None else alone.around(seq)
                found[at] = number
        self._found.update(zip(seqs, found, strict=True))
        table, here = list(keys), {-1: -1}
        for number in dict.fromkeys(found):
            here.setdefault(number, len(here) - 1)
        return array("i", map(here.__getitem__, found)), [table[number] for number in here if number >= 0]
