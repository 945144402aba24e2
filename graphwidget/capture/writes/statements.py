"""Finds the lines of a cell that may write in place, from their source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from types import CodeType
from typing import Any, NamedTuple

from graphwidget.capture.lines.bytecode import may_write
from graphwidget.capture.lines.cells import Scope
from graphwidget.capture.lines.files import block_of
from graphwidget.model import Write

__all__ = ["CellStatements", "Statement", "Wrote", "statements"]

MAX_CELLS = 1000  # cells whose statements are kept
HARMLESS = 8  # comparisons of a line that only calls a function before it is skipped
HARMLESS_WRITER = 32  # the same for a line that looks like writing
MAX_NAMES = 8  # tensors looked up by name for one line


Hidden = tuple[str, tuple[str, ...], bool]


class Wrote(NamedTuple):
    """What a line has written: names and storages of the tensors, and how it is remembered."""

    paths: list[str]
    keys: list[int]
    write: Write


class Statement:
    """A statement that may write in place.

    `text`: as written; one of several lines on one line. `sure`: it looks like an in-place write. `chains`: the
    variables and attributes it names, as ``("self", "state")``, the targets of writes first. `hidden`: what it may
    write to through ``.data``, as in the source, each with its chain, and whether that is sure. `runs`: how often it
    was compared. `begun`: how often the values of `hidden` might have been compared. `wrote`: it has written.
    `written`: what of `hidden` it was seen to write to. `last`: what it wrote otherwise, the last time.
    """

    __slots__ = ("__weakref__", "begun", "chains", "hidden", "last", "optimizer", "runs", "sure", "text", "written",
                 "wrote")  # fmt: skip

    def __init__(
        self,
        text: str,
        sure: bool,
        chains: tuple[tuple[str, ...], ...],
        optimizer: bool,
        hidden: tuple[Hidden, ...],
    ) -> None:
        self.text, self.sure, self.chains, self.optimizer, self.hidden = text, sure, chains, optimizer, hidden
        self.runs, self.wrote, self.begun = 0, bool(hidden), 0
        self.written: set[str] = set()
        self.last: Wrote | None = None

    def due(self) -> bool:
        """Whether to compare the line this time."""
        if self.wrote:
            return True
        self.runs += 1
        return self.runs <= self._harmless or self.runs & (self.runs - 1) == 0

    def compares(self, always: int) -> bool:
        """Whether to compare values this time: the first times, and then ever more rarely."""
        self.begun += 1
        return self.begun <= always or self.begun & (self.begun - 1) == 0

    def once_more(self) -> None:
        """Compare the line the next time, too: by then, another object may hold the tensor it writes to."""
        self.runs = min(self.runs, self._harmless - 1)

    @property
    def _harmless(self) -> int:
        return HARMLESS_WRITER if self.sure else HARMLESS


class CellStatements:
    """The statements of the most recent cells."""

    def __init__(self) -> None:
        self._of_cell: dict[tuple[int, int], dict[int, Statement]] = {}  # by cell; of a file, by function

    def of(self, scope: Scope) -> dict[int, Statement]:
        """Return line -> statement, for the lines of a scope that can write in place."""
        code = scope.code() if scope.cell.file is not None else None
        key = (scope.base, code.co_firstlineno if code is not None else 0)
        found = self._of_cell.get(key)
        if found is None:
            if len(self._of_cell) >= MAX_CELLS:
                del self._of_cell[next(iter(self._of_cell))]
            found = self._of_cell[key] = self._read(scope, code)
        return found

    def _read(self, scope: Scope, code: CodeType | None) -> dict[int, Statement]:
        if code is None:
            return statements("\n".join(scope.cell.lines[scope.shift :]))
        if scope.top and not scope.is_main and not may_write(code):
            return {}  # a module that is imported defines functions
        text, before = block_of(code, scope.cell.lines)
        return {line + before: statement for line, statement in statements(text).items()}

    def lines_of(self, scope: Scope) -> set[int]:
        """Return the lines of a scope to watch."""
        return set(self.of(scope))


def statements(source: str) -> dict[int, Statement]:
    """Return line -> statement, for the lines of a cell that can write in place. Lines of magics are skipped."""
    lines = [re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in source.splitlines()]
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[int, Statement] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            statement = _classify(node, lines)
            if statement is not None:
                for line in range(node.lineno, _end(node) + 1):
                    found[line] = _of_one_line(found.get(line), statement, lines[line - 1])
    return found


def _of_one_line(first: Statement | None, second: Statement, line: str) -> Statement:
    """The statement of a line that begins with `first` and goes on with `second`: ``f(x); h.mul_(2)``.

    If both look like writes, it cannot be known which of them has written: the whole line stands for both.
    """
    if first is None or second.sure > first.sure:
        return second
    if first.text == line.strip() or not (first.sure and second.sure):
        return first
    chains = tuple(dict.fromkeys((*first.chains, *second.chains)))
    hidden = _once((*first.hidden, *second.hidden))
    return Statement(line.strip(), True, chains, first.optimizer or second.optimizer, hidden)


def _once(hidden: Iterable[Hidden]) -> tuple[Hidden, ...]:
    """Each name once, sure if one of them is."""
    found: dict[str, Hidden] = {}
    for one in sorted(hidden, key=lambda each: not each[2]):
        found.setdefault(one[0], one)
    return tuple(found.values())[:MAX_NAMES]


def _end(node: ast.stmt) -> int:
    """Return the last line of a statement, without the body of a compound one."""
    body: Any = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        return max(node.lineno, body[0].lineno - 1)
    return node.end_lineno or node.lineno


def _classify(node: ast.stmt, lines: list[str]) -> Statement | None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return None
    written: list[ast.expr] = []
    targets: list[ast.expr] = []
    if isinstance(node, ast.AugAssign):
        targets = written = [node.target]
    elif isinstance(node, ast.Assign):
        targets = [t for target in node.targets for t in _flat(target)]
        written = [t for t in targets if isinstance(t, ast.Subscript)]
    through = [target for target in targets if _data(target) is not None]
    given: list[ast.expr] = []
    sure, optimizer, calls = bool(written or through), False, False
    for part in _own_expressions(node):
        if not isinstance(part, ast.Call):
            continue
        calls = True
        name = part.func.attr if isinstance(part.func, ast.Attribute) else ""
        if name == "step" or re.search(r"[^_]_$", name):
            # What ``states[t + 1] = env.step(states[t])`` writes to is its target: no step of an optimizer does that.
            sure, optimizer = True, optimizer or (name == "step" and not written)
            written.append(part.func)
            through.append(part.func)  # `w.data.mul_(2)`
            given += part.args  # `init.zeros_(w.data)` writes, `k.copy_(w.data)` reads
        out = next((k.value for k in part.keywords if k.arg == "out"), None)
        if out is not None:
            sure = True
            written.append(out)
            through.append(out)
    if not (sure or calls):
        return None
    named = [*written, *(p for p in _own_expressions(node) if isinstance(p, (ast.Attribute, ast.Name)))]
    chains = _longest(chain for chain in map(_chain, named) if chain)
    hidden = [
        (ast.unparse(owner), _chain(owner), of is through)
        for of in (through, given)
        for owner in map(_data, of)
        if owner is not None
    ]
    return Statement(_text(node, lines), sure, chains[:MAX_NAMES], optimizer, _once(hidden))


def _longest(chains: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Each chain once, without those that a longer one goes on from: `self` of `self.items`."""
    found = dict.fromkeys(chains)
    return tuple(one for one in found if not any(one != other and one == other[: len(one)] for other in found))


def _text(node: ast.stmt, lines: list[str]) -> str:
    """Return a statement on one line: as written, or as Python writes one of several lines. Of a block, its first."""
    if hasattr(node, "body"):
        return lines[node.lineno - 1].strip()
    if node.lineno != node.end_lineno:
        return ast.unparse(node)
    return lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()


def _data(node: ast.expr) -> ast.expr | None:
    """Return the expression before ``.data`` in `w.data`, `w.data[0]`, `w.data.mul_`; None if there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and node.attr == "data":
            return node.value
        node = node.value
    return None


def _flat(target: ast.expr) -> list[ast.expr]:
    return [t for e in target.elts for t in _flat(e)] if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _own_expressions(node: ast.stmt) -> Iterable[ast.AST]:
    """Return the expressions of a statement, without those of statements and functions inside it."""
    work: list[ast.AST] = [node]
    while work:
        one = work.pop(0)
        yield one
        work.extend(c for c in ast.iter_child_nodes(one) if not isinstance(c, (ast.stmt, ast.Lambda)))


def _chain(node: ast.AST) -> tuple[str, ...]:
    """Return ``("self", "state")`` for `self.state[0].add_`: the names up to the first step that is no attribute."""
    names: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            names.clear()
            node = node.value
        elif isinstance(node, ast.Name):
            return (node.id, *reversed(names))
        else:
            return ()
