"""The user's cells as text: which code object belongs to which cell, and where its loops are.

A cell is found by the file name under which its code was compiled. That name is not unique: in a Jupyter kernel,
the same source run twice has the same name. So a code object, once seen, is remembered by its `id` (weakly) as part
of the run in which it first ran. This file does not know torch.
"""

from __future__ import annotations

import ast
import weakref
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType, FrameType, TracebackType
from typing import Any

from graphwidget.model import Place

__all__ = ["ANY", "BOTH", "ENTERS", "MAGIC_FILES", "PASS", "PLAIN", "Book", "Cell", "Loop", "Scope", "Step"]

# File names under which IPython's cell magics compile the rest of the cell (%%time, %%timeit).
MAGIC_FILES = ("<timed exec>", "<timed eval>", "<magic-timeit>")

MAX_FOREIGN = 20_000  # names of files known not to be cells

_NO_CODE = (ast.Global, ast.Nonlocal)

# What a line does to the counts of loops: PLAIN, nothing; PASS, a pass begins (if the bytecode is at this offset; the
# loops inside start over); ENTERS, a loop may be entered (if the frame comes from outside these lines); BOTH, where the
# body of one loop begins with another loop; ANY, anything else.
PLAIN, PASS, ENTERS, BOTH, ANY = range(5)
# One of these, the position of the innermost loop around the line (-1: none), and the data named in brackets.
Step = tuple[int, int, int, Any]


class Loop:
    """One `for` or `while` of a cell, in line numbers of the compiled source.

    `mark` is the line at which every pass begins: the first statement of the body, or the loop's own
    line if the body is on that line (`inline`). `parents` are the positions of the enclosing loops.
    """

    __slots__ = ("first", "inline", "last", "mark", "parents")

    def __init__(self, node: ast.For | ast.AsyncFor | ast.While, parents: tuple[int, ...]) -> None:
        body = next((s for s in node.body if not _makes_no_code(s)), node.body[0])
        self.first = node.lineno
        self.last = node.body[-1].end_lineno or node.body[-1].lineno
        self.mark = min([body.lineno, *(d.lineno for d in getattr(body, "decorator_list", ()))])
        self.inline = self.mark == self.first
        self.parents = parents


def _makes_no_code(statement: ast.stmt) -> bool:
    return isinstance(statement, _NO_CODE) or (isinstance(statement, ast.AnnAssign) and statement.value is None)


def loops_by_scope(source: str) -> dict[tuple[str, int], list[Loop]]:
    """Loops of each function of `source`, by its name and first line; ``("", 0)`` is the module level."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[tuple[str, int], list[Loop]] = {}
    work: list[tuple[ast.AST, tuple[str, int], tuple[int, ...]]] = [(tree, ("", 0), ())]
    while work:
        node, scope, parents = work.pop()
        inside = parents
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            scope, inside = (node.name, first), ()
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            loops = found.setdefault(scope, [])
            inside = (*parents, len(loops))
            loops.append(Loop(node, parents))
        work.extend((child, scope, inside) for child in ast.iter_child_nodes(node))
    return found


class Cell:
    """One run of a cell.

    `number` is the execution count. `shift` is added to a line of the compiled code to get the line of the
    cell as the user sees it. `base` turns (cell, line) into one integer: `base + line`.
    """

    __slots__ = ("base", "cell_id", "inside", "lines", "loops", "magic_loops", "magic_shift", "number", "run", "shift")

    def __init__(
        self, number: int | None, cell_id: str | None, source: str, run: int | None, base: int, code: str | None
    ) -> None:
        self.number, self.cell_id, self.run, self.base = number, cell_id, run, base
        self.inside = False  # whether it is the body of a cell magic, and so part of the cell around it
        self.lines = source.splitlines()
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
    def source(self) -> str:
        return "\n".join(self.lines)

    def text(self, line: int | None) -> str:
        """Source of a line (counted from 1), without the spaces around it; "" if there is no such line."""
        return self.lines[line - 1].strip() if line is not None and 0 < line <= len(self.lines) else ""


class Scope:
    """One code object of a cell: its loops, and the bytecode offsets at which their passes begin."""

    __slots__ = ("at", "back", "base", "cell", "code", "entry", "heads", "loops", "marks", "outermost", "shift",
                 "steps", "watched")  # fmt: skip

    def __init__(
        self,
        cell: Cell,
        code: CodeType,
        watched: Callable[[Scope], set[int]] | None = None,
        died: Callable[[object], object] | None = None,
    ) -> None:
        magic = code.co_filename in MAGIC_FILES
        self.code = weakref.ref(code, died)
        self.cell = cell
        self.shift = cell.magic_shift if magic else cell.shift
        self.base = cell.base + self.shift
        loops = cell.magic_loops if magic else cell.loops
        top = code.co_name.startswith("<") and code.co_name not in _INNER
        # The only frame of the cell below this one would be the line of the magic that runs the rest of the cell.
        self.outermost = top and (magic or cell.inside)
        key = ("", 0) if top else (code.co_name, code.co_firstlineno)
        own = loops.get(key, [])
        self.loops: list[Loop] = own
        # Lines that change loop counts: `heads` has the loops entered there, `marks` the loops that begin a pass there,
        # each with the loops inside it.
        self.heads: dict[int, list[tuple[int, Loop]]] = {}
        self.marks: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        for i, loop in enumerate(own):
            self.heads.setdefault(loop.first, []).append((i, loop))
            self.marks.setdefault(loop.first, [])
            if not loop.inline:
                inside = tuple(j for j, other in enumerate(own) if i in other.parents)
                self.marks.setdefault(loop.mark, []).append((i, inside))
        self.watched: set[int] = watched(self) if watched is not None else set()
        self.steps: dict[int, Step] = {}  # for lines that were reached and are not watched
        self.entry: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self.at: dict[int, tuple[int, ...]] = {}

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
    """

    def __init__(
        self,
        code_names: Mapping[str, object] | Callable[[str], object] | None = None,
        watched: Callable[[Scope], set[int]] | None = None,
    ) -> None:
        self.cells: list[Cell] = []
        self.bases: list[int] = []
        # None: known not to belong to a cell. Names that are missing have not been checked yet.
        self.files: dict[str, Cell | None] = {}
        self.foreign: set[str] = set()  # names in `files` that belong to no cell: checked at every function call
        self.scopes: dict[int, Scope] = {}
        self.watched = watched
        self._find_name = code_names.get if isinstance(code_names, Mapping) else code_names

    def open(
        self,
        filename: str,
        number: int | None,
        cell_id: str | None,
        source: str,
        run: int | None,
        code: str | None = None,
    ) -> Cell:
        """Add a cell: from now on, code compiled as `filename` belongs to it."""
        cell = Cell(number, cell_id, source, run, self._next_base(), code)
        self.cells.append(cell)
        self.bases.append(cell.base)
        self.bind(filename, cell)
        return cell

    def bind(self, name: str, cell: Cell) -> None:
        """From now on, code compiled under this name belongs to the cell."""
        self.files[name] = cell
        self.foreign.discard(name)

    def _next_base(self) -> int:
        if not self.cells:
            return 0
        last = self.cells[-1]
        return last.base + len(last.lines) + last.magic_shift + last.shift + 16

    def scope(self, code: CodeType) -> Scope | None:
        """The scope of a code object, None if it does not belong to a cell."""
        found = self.scopes.get(id(code))
        if found is not None:
            return found
        name = code.co_filename
        if name in self.foreign:
            return None
        if name not in self.files:
            self.files[name] = self._foreign(name)
        cell = self.files[name]
        if cell is None:
            if len(self.foreign) >= MAX_FOREIGN:
                self.foreign.clear()
            self.foreign.add(name)
            return None
        return self._register(cell, code)

    def _foreign(self, name: str) -> Cell | None:
        answer: Any = self._find_name(name) if self._find_name is not None else None
        if answer is None:
            return None
        number, cell_id, source = answer
        return self.open(name, number, cell_id, source, None)

    def _register(self, cell: Cell, code: CodeType) -> Scope:
        """Remember a code object and the functions in it: they belong to this run, whenever they are called."""
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

    def place(self, inner: int, outer: int, iteration: int) -> Place:
        """The place that the three integers of a stretch stand for."""
        cell, line = self.unpack(inner)
        outer_cell, outer_line = self.unpack(outer)
        return Place(
            cell.number,
            line,
            cell.text(line),
            outer_cell.number,
            outer_line,
            outer_cell.text(outer_line),
            iteration if iteration >= 0 else None,
            outer_cell.cell_id,
            outer_cell.run,
        )

    def raised_at(self, traceback: TracebackType | None) -> tuple[Place | None, FrameType | None]:
        """Where in cells an error was raised, and the innermost frame of a cell that it passed. None: no cell."""
        keys, frame = [], None
        while traceback is not None:
            scope = self.scope(traceback.tb_frame.f_code)
            if scope is not None:
                keys.append(scope.base + (traceback.tb_lineno or 0))
                frame = traceback.tb_frame
            traceback = traceback.tb_next
        return (self.place(keys[-1], keys[0], -1) if keys else None), frame

    def unpack(self, key: int) -> tuple[Cell, int]:
        """The cell and the line of `base + line`."""
        cell = self.cells[bisect_right(self.bases, key) - 1]
        return cell, key - cell.base
