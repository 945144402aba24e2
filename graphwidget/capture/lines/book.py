"""The book of all cells and files: which of them a code object, a frame or a line belongs to.

See `cells.py` for what a cell is. This file does not know torch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import CodeType, FrameType, TracebackType
from typing import Any

from graphwidget.capture.lines.cells import Cell, Scope
from graphwidget.capture.lines.files import SourceFile
from graphwidget.capture.lines.own_code import is_outermost
from graphwidget.model import CellRun, Place

__all__ = ["Book"]

MAX_FOREIGN = 20_000  # names of files known not to be cells
MAX_STACKS = 20_000  # different stacks of calling lines
MAX_TEXTS = 300  # files whose texts a record has


class Book:
    """All cells, and the scope of each code object.

    Parameters
    ----------
    code_names
        For file names that were not passed to `open`: a mapping or function from file name to
        ``(number, cell_id, source)`` or None. It identifies code that ran before the start.
    watched
        Returns the lines of a scope that are watched.
    is_own
        Whether a file name is that of a file of the user's own.

    Attributes
    ----------
    stacks
        The calling lines of functions, each as the number of the stack of its caller, and the key of the calling line.
    """

    def __init__(
        self,
        code_names: Mapping[str, object] | Callable[[str], object] | None = None,
        watched: Callable[[Scope], set[int]] | None = None,
        is_own: Callable[[str], bool] | None = None,
    ) -> None:
        self.cells: list[Cell] = []
        self.bases: list[int] = []
        # None: known not to belong to a cell. Names that are missing have not been checked yet.
        self.files: dict[str, Cell | None] = {}
        self.foreign: set[str] = set()  # names in `files` that belong to no cell: checked at every function call
        self.scopes: dict[int, Scope] = {}
        self.watched = watched
        self.is_own = is_own
        self.stacks: list[tuple[int, int]] = []
        self._stack_numbers: dict[tuple[int, int], int] = {}
        self._file_runs = 0
        self.modules: list[str] = []  # names of modules of the user's own in which code has run
        self._find_name = code_names.get if isinstance(code_names, Mapping) else code_names

    def open(
        self,
        filename: str,
        number: int | None,
        cell_id: str | None,
        source: str,
        run: int | None,
        code: str | None = None,
        file: SourceFile | None = None,
    ) -> Cell:
        """Add a cell: from now on, code compiled as `filename` belongs to it."""
        cell = Cell(number, cell_id, source, run, self._next_base(), code, file)
        self.cells.append(cell)
        self.bases.append(cell.base)
        self.bind(filename, cell)
        return cell

    def bind(self, name: str, cell: Cell) -> None:
        """From now on, code compiled under this name belongs to the cell."""
        self.files[name] = cell
        self.foreign.discard(name)

    def _next_base(self) -> int:
        return self.cells[-1].base + self.cells[-1].room if self.cells else 0

    def scope(self, code: CodeType) -> Scope | None:
        """The scope of a code object, None if it does not belong to a cell."""
        found = self.scopes.get(id(code))
        if found is not None:
            return found
        name = code.co_filename
        if name in self.foreign:
            return None
        if name not in self.files:
            self.files[name] = self.of_name(name, code)
        cell = self.files[name]
        if cell is None:
            if len(self.foreign) >= MAX_FOREIGN:
                self.foreign.clear()
            self.foreign.add(name)
            return None
        return self._register(cell, code)

    def of_name(self, name: str, code: CodeType | None = None) -> Cell | None:
        """The cell, or the file of the user's own, of a name that is not in `files`; a file only with code of it."""
        answer: Any = self._find_name(name) if self._find_name is not None else None
        if answer is not None:
            number, cell_id, source = answer
            return self.open(name, number, cell_id, source, None)
        return self._open_file(name, code) if code and self.is_own is not None and self.is_own(name) else None

    def _open_file(self, name: str, code: CodeType) -> Cell:
        """Add a file. Its run has a number below zero, so that in an order of runs it stands before all cells."""
        self._file_runs += 1
        return self.open(name, None, None, "", -self._file_runs, file=SourceFile(name, code))

    def note_module(self, name: object) -> None:
        """Code of a module of the user's own runs."""
        if isinstance(name, str) and name not in self.modules:
            self.modules.append(name)

    def forget_files(self) -> None:
        """Ask again which files are the user's own. Code that was recorded keeps its places."""
        for name in [name for name, cell in self.files.items() if cell is None or cell.file is not None]:
            del self.files[name]
        self.foreign.clear()
        for key in [key for key, scope in list(self.scopes.items()) if scope.cell.file is not None]:
            self.scopes.pop(key, None)

    def file_runs(self) -> dict[int, CellRun]:
        """The files as runs of cells, by number; those whose text is not needed for any place are left out last."""
        files = [cell for cell in self.cells if cell.file is not None and cell.run is not None and cell.run < 0]
        read = [cell for cell in files if cell.file is not None and cell.file.edited is not None]
        some = dict.fromkeys([*reversed(read), *reversed(files)])
        return {run.run: run for run in map(_run_of_file, list(some)[:MAX_TEXTS])}

    def edited_files(self) -> list[CellRun]:
        """Those whose text on the disk is not that of the code that ran, of the files whose text was needed."""
        files = [cell for cell in self.cells if cell.file is not None and cell.file.edited is not None]
        return [run for run in map(_run_of_file, files) if run.edited or run.changed]

    def _register(self, cell: Cell, code: CodeType) -> Scope:
        """Remember a code object and the functions in it: they belong to this run, whenever they are called."""
        if cell.file is not None and not cell.file.is_of(code):  # of another version of the file, or made by `exec`
            cell = self._open_file(code.co_filename, code)
            cell.shift = cell.file.shift if cell.lines and cell.file is not None else 0
            if code.co_name != "<module>":
                self.files[code.co_filename] = self.cells[-2]
        work = [code]
        while work:
            one = work.pop()
            key = id(one)
            # `partial` of a C method: a Ctrl+C during a callback in Python, when the code dies, would be lost.
            self.scopes[key] = Scope(cell, one, self.watched, partial(self.scopes.pop, key))
            work.extend(c for c in one.co_consts if isinstance(c, CodeType) and id(c) not in self.scopes)
        return self.scopes[id(code)]

    def codes(self) -> list[CodeType]:
        """The known code objects that are alive."""
        return [code for scope in list(self.scopes.values()) if (code := scope.code()) is not None]

    def stack(self, caller: int, line: int) -> int:
        """The number of a stack: the number of the caller's own (-1: it is the outermost), and the calling line."""
        found = self._stack_numbers.get((caller, line))
        if found is None:
            if len(self.stacks) >= MAX_STACKS:
                return caller  # a recursion without end: the deepest lines are left out
            found = self._stack_numbers[caller, line] = len(self.stacks)
            self.stacks.append((caller, line))
        return found

    def callers(self, stack: int) -> list[int]:
        """The keys of the calling lines of a stack, outermost first."""
        keys = []
        while stack >= 0:
            stack, line = self.stacks[stack]
            keys.append(line)
        return keys[::-1]

    def place(self, inner: int, stack: int, iteration: int) -> Place:
        """The place of a line, called from a stack (-1: it is the outermost itself) in a pass of a loop (-1: none)."""
        return self._place([*self.callers(stack), inner], iteration)

    def _place(self, keys: list[int], iteration: int) -> Place:
        *callers, line = (self.line_at(key) for key in keys)
        outer, run = (callers or [line])[0], self.unpack(keys[0])[0].run
        return replace(
            line,
            outer_cell=outer.cell,
            outer_line=outer.line,
            outer_source=outer.source,
            outer_file=outer.file,
            iteration=iteration if iteration >= 0 else None,
            cell_id=outer.cell_id,
            run=run,
            stack=tuple(callers),
        )

    def line_at(self, key: int) -> Place:
        """A line alone: without what called it."""
        cell, line = self.unpack(key)
        file = cell.file.shown if cell.file is not None else None
        function = cell.function_at(line)
        return Place(
            cell.number, line, cell.text(line), cell_id=cell.cell_id, file=file, function=function, inner_run=cell.run
        )

    def own_frames(self, frame: FrameType | None) -> Iterator[tuple[FrameType, Scope]]:
        """The frames of the user's own code, from `frame` outwards. What runs a cell is not the user's own."""
        return self.own_among(_outwards(frame))

    def own_among(self, frames: Iterable[FrameType]) -> Iterator[tuple[FrameType, Scope]]:
        """The same of some frames, innermost first."""
        in_cell = False
        for frame in frames:
            scope = None if frame.f_code.co_filename in self.foreign else self.scope(frame.f_code)
            if scope is not None and (scope.cell.file is None or not in_cell):
                yield frame, scope
                in_cell = in_cell or (scope.top and scope.cell.file is None)
                if scope.outermost:
                    return

    def raised_at(self, traceback: TracebackType | None) -> tuple[Place | None, FrameType | None]:
        """Where in cells an error was raised, and the innermost frame of a cell that it passed. None: no cell."""
        keys: list[int] = []
        frame: FrameType | None = None
        while traceback is not None:
            scope = self.scope(traceback.tb_frame.f_code)
            if scope is not None:
                if scope.top and scope.cell.file is None and keys and self.unpack(keys[-1])[0].file is not None:
                    keys.clear()  # code of a file that runs cells
                keys.append(scope.base + (traceback.tb_lineno or 0))
                frame = traceback.tb_frame
            traceback = traceback.tb_next
        return (self._place(keys, -1) if keys else None), frame

    def unpack(self, key: int) -> tuple[Cell, int]:
        """The cell and the line of `base + line`."""
        cell = self.cells[bisect_right(self.bases, key) - 1]
        return cell, key - cell.base


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None and not is_outermost(frame.f_code):
        yield frame
        frame = frame.f_back


def _run_of_file(cell: Cell) -> CellRun:
    assert cell.file is not None and cell.run is not None
    source, edited, changed = cell.source, bool(cell.file.edited), cell.file.changed
    return CellRun(cell.run, None, source, file=cell.file.shown, edited=edited, changed=changed and not edited)
