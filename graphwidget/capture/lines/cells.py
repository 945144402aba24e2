"""The user's cells and files as text: which code object belongs to which of them, and where its loops are.

A file of the user's own is treated as a cell is; below, "cell" means both. A cell is found by the file name under
which its code was compiled. That name is not unique: in a Jupyter kernel, the same source run twice has the same
name. So a code object, once seen, is remembered by its `id` (weakly) as part of the run in which it first ran, in a
`Book`. This file does not know torch.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

from graphwidget.capture.lines.bytecode import has_loop
from graphwidget.capture.lines.files import SourceFile, block_of
from graphwidget.capture.lines.loops import Loop, functions_in, loops_by_scope

__all__ = ["ANY", "BOTH", "ENTERS", "MAGIC_FILES", "NOT_SEARCHED", "PASS", "PLAIN", "Cell", "Loop", "Scope", "Step"]

# File names under which IPython's cell magics compile the rest of the cell (%%time, %%timeit).
MAGIC_FILES = ("<timed exec>", "<timed eval>", "<magic-timeit>")

FILE_LINES = 1 << 24  # numbers that are set aside for the lines of a file, which is not read at once

# What a line does to the counts of loops: PLAIN, nothing; PASS, a pass begins (if the bytecode is at this offset; the
# loops inside start over); ENTERS, a loop may be entered (if the frame comes from outside these lines); BOTH, where the
# body of one loop begins with another loop; ANY, anything else.
PLAIN, PASS, ENTERS, BOTH, ANY = range(5)
NOT_SEARCHED = -2  # for the loop around a line: not searched yet
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
            in_head = inner >= 0 and line < self.loops[inner].mark
            self.steps[line] = (PLAIN, NOT_SEARCHED if in_head else inner, 0, None)
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
