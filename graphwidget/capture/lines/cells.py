"""The user's cells and files as text: which code object belongs to which of them, and where its loops are.

A file of the user's own is treated as a cell is; below, "cell" means both. A cell is found by the file name under
which its code was compiled. That name is not unique: in a Jupyter kernel, the same source run twice has the same
name. So a code object, once seen, is remembered by its `id` (weakly) as part of the run in which it first ran. This
file does not know torch.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import CodeType, FrameType, TracebackType
from typing import Any

from graphwidget.capture.lines.bytecode import has_loop
from graphwidget.capture.lines.files import SourceFile, block_of
from graphwidget.capture.lines.loops import Loop, functions_in, loops_by_scope
from graphwidget.capture.lines.own_code import is_outermost
from graphwidget.model import CellRun, Place

__all__ = ["ANY", "BOTH", "ENTERS", "MAGIC_FILES", "PASS", "PLAIN", "Book", "Cell", "Loop", "Scope", "Step"]

# File names under which IPython's cell magics compile the rest of the cell (%%time, %%timeit).
MAGIC_FILES = ("<timed exec>", "<timed eval>", "<magic-timeit>")

MAX_FOREIGN = 20_000  # names of files known not to be cells
MAX_STACKS = 20_000  # different stacks of calling lines
MAX_TEXTS = 300  # files whose texts a record has
FILE_LINES = 1 << 24  # numbers that are set aside for the lines of a file, which is not read at once

# What a line does to the counts of loops: PLAIN, nothing; PASS, a pass begins (if the bytecode is at this offset; the
# loops inside start over); ENTERS, a loop may be entered (if the frame comes from outside these lines); BOTH, where the
# body of one loop begins with another loop; ANY, anything else.
PLAIN, PASS, ENTERS, BOTH, ANY = range(5)
# One of these, the position of the innermost loop around the line (-1: none), and the data named in brackets.
Step = tuple[int, int, int, Any]


class Cell:
    """One run of a cell, or a file of the user's own.

    `number` is the execution count. `shift` is added to a line of the compiled code to get the line of the
    cell as the user sees it. `base` turns (cell, line) into one integer: `base + line`. `file`: the file, for code
    that is in no cell.
    """

    __slots__ = ("_bodies", "_lines", "base", "cell_id", "file", "inside", "loops", "magic_loops", "magic_shift",
                 "number", "run", "shift")  # fmt: skip

    def __init__(
        self,
        number: int | None,
        cell_id: str | None,
        source: str,
        run: int | None,
        base: int,
        code: str | None,
        file: SourceFile | None = None,
    ) -> None:
        self.number, self.cell_id, self.run, self.base, self.file = number, cell_id, run, base, file
        self.inside = False  # whether it is the body of a cell magic, and so part of the cell around it
        self._lines = source.splitlines()
        self._bodies: list[tuple[int, int, str]] | None = None
        self.shift = self.magic_shift = 0
        self.loops: dict[tuple[str, int], list[Loop]] = {}
        self.magic_loops = self.loops
        if file is None:
            self._find_loops(source, code)

    def _find_loops(self, source: str, code: str | None) -> None:
        compiled = source if code is None else code
        # IPython drops leading empty lines before it compiles.
        blank = next((i for i, line in enumerate(self.lines) if line.strip()), 0)
        self.shift = blank if code is not None and not compiled.startswith("\n" * max(blank, 1)) else 0
        self.loops = loops_by_scope(compiled)
        self.magic_shift, self.magic_loops = 0, self.loops
        if blank < len(self.lines) and self.lines[blank].lstrip().startswith("%%"):
            self.magic_shift = blank + 1
            self.magic_loops = loops_by_scope("\n".join(self.lines[blank + 1 :]))

    @property
    def lines(self) -> list[str]:
        """Its text; of a file that has been edited since it was imported, none."""
        return self._lines if self.file is None else self.file.lines

    @property
    def label(self) -> str:
        """``In[3]``, the path of a file, or "a cell"."""
        if self.file is not None:
            return self.file.shown
        return f"In[{self.number}]" if self.number is not None else "a cell"

    @property
    def room(self) -> int:
        """How many numbers its lines need."""
        return len(self._lines) + self.magic_shift + self.shift + 16 if self.file is None else FILE_LINES

    @property
    def source(self) -> str:
        return "\n".join(self.lines)

    def function_at(self, line: int) -> str | None:
        """The qualified name of the function around a line (``Encoder.forward``); None: it is in none."""
        if self._bodies is None:
            self._bodies = functions_in(self.source)
        around = [(first, name) for first, last, name in self._bodies if first <= line <= last]
        return max(around)[1] if around else None

    def text(self, line: int | None) -> str:
        """Source of a line (counted from 1), without the spaces around it; "" if there is no such line."""
        return self.lines[line - 1].strip() if line is not None and 0 < line <= len(self.lines) else ""


class Scope:
    """One code object of a cell: its loops, and the bytecode offsets at which their passes begin.

    `prepare` finds the loops and the lines to watch, when the code first runs: most functions of a file never do.
    """

    __slots__ = ("at", "back", "base", "cell", "code", "entry", "find_watched", "heads", "loops", "magic",
                 "marks", "outermost", "prepared", "shift", "steps", "top", "watched")  # fmt: skip

    def __init__(
        self,
        cell: Cell,
        code: CodeType,
        watched: Callable[[Scope], set[int]] | None = None,
        died: Callable[[object], object] | None = None,
    ) -> None:
        self.magic = magic = code.co_filename in MAGIC_FILES
        self.code = weakref.ref(code, died)
        self.cell = cell
        self.shift = cell.magic_shift if magic else cell.shift
        self.base = cell.base + self.shift
        self.top = code.co_name.startswith("<") and code.co_name not in _INNER
        # The only frame of the cell below this one would be the line of the magic that runs the rest of the cell.
        self.outermost = self.top and (magic or cell.inside)
        self.find_watched = watched
        self.prepared = False
        self.loops: list[Loop] = []
        # Lines that change loop counts: `heads` has the loops entered there, `marks` the loops that begin a pass there,
        # each with the loops inside it.
        self.heads: dict[int, list[tuple[int, Loop]]] = {}
        self.marks: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        self.watched: set[int] = set()
        self.steps: dict[int, Step] = {}  # for lines that were reached and are not watched
        self.entry: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self.at: dict[int, tuple[int, ...]] = {}

    @property
    def is_main(self) -> bool:
        """Whether it is of a cell or of the script that runs, not of a file that was imported."""
        return self.cell.run is None or self.cell.run >= 0

    def prepare(self) -> None:
        """Find the loops of the code, and the lines to watch."""
        self.prepared = True
        code = self.code()
        if code is None:
            return
        key = ("", 0) if self.top else (code.co_name, code.co_firstlineno)
        own = self._loops(code).get(key, [])
        self.loops = own
        for i, loop in enumerate(own):
            self.heads.setdefault(loop.first, []).append((i, loop))
            self.marks.setdefault(loop.first, [])
            if not loop.inline:
                inside = tuple(j for j, other in enumerate(own) if i in other.parents)
                self.marks.setdefault(loop.mark, []).append((i, inside))
        self.watched = self.find_watched(self) if self.find_watched is not None else set()

    def _loops(self, code: CodeType) -> dict[tuple[str, int], list[Loop]]:
        if self.cell.file is None:
            return self.cell.magic_loops if self.magic else self.cell.loops
        return loops_by_scope(*block_of(code, self.cell.lines)) if has_loop(code) else {}

    def watch(self, line: int) -> None:
        """Watch a line."""
        self.watched.add(line)
        self.steps.pop(line, None)

    def unwatch(self, line: int) -> None:
        """Stop watching a line."""
        self.watched.discard(line)

    def learn(self, line: int) -> None:
        """Remember what reaching a line does. The line has been reached once, so offsets are known."""
        heads, marks = self.heads.get(line, ()), self.marks.get(line, ())
        around = self.loops_at(line)
        inner = around[0] if around else -1
        if not heads and not marks:
            self.steps[line] = (PLAIN, inner, 0, None)
        elif not heads and len(marks) == 1 and marks[0][0] == inner:
            self.steps[line] = (PASS, inner, self.entry[inner], marks[0][1])
        elif not marks and len(heads) == 1 and heads[0][0] == inner and not heads[0][1].inline:
            self.steps[line] = (ENTERS, inner, heads[0][1].first, heads[0][1].last)
        elif len(heads) == len(marks) == 1 and inner in marks[0][1] and heads[0][0] == inner and not heads[0][1].inline:
            outer, inside = marks[0]
            self.steps[line] = (BOTH, inner, self.entry[outer], (outer, inside, heads[0][1]))
        else:
            self.steps[line] = (ANY, inner, 0, None)

    def loops_at(self, line: int) -> tuple[int, ...]:
        """Positions of the loops around `line`, innermost first."""
        known = self.at.get(line)
        if known is None:
            around = [i for i, loop in enumerate(self.loops) if loop.first <= line <= loop.last]
            known = self.at[line] = tuple(sorted(around, key=lambda i: -len(self.loops[i].parents)))
        return known


_INNER = frozenset({"<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})


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
