"""Edits of a cell's text: how to make them, how to apply them, and how to show them to a person.

All functions are pure. `text` is the text of the cell before any edit, `cell` its number. A function that cannot make
the edit gives none. Where the edit belongs is said by a line or by a statement of the parsed text.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from graphwidget.diagnosis.source import syntax
from graphwidget.model import TextEdit

Edits = tuple[TextEdit, ...]
Position = tuple[int, int]  # line from 1, column from 0

MOST_CONTEXT = 4  # lines of the statement that an insertion is shown with


# ------------------------------------------------------------------ positions


def with_ends(text: str) -> list[str]:
    """The lines of a text, with their ends, as Python counts them."""
    return list(io.StringIO(text, newline=""))


def span(text: str, node: ast.AST) -> tuple[Position, Position]:
    """Where a node begins and ends, in characters. (The columns of `ast` are bytes of UTF-8.)"""
    lines = with_ends(text)

    def position(line: int, column: int) -> Position:
        return line, len(lines[line - 1].encode()[:column].decode())

    start = position(node.lineno, node.col_offset)  # type: ignore[attr-defined]
    return start, position(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def _offsets(text: str) -> list[int]:
    """Where each line begins in the text, and where the text ends."""
    starts = [0]
    for line in with_ends(text):
        starts.append(starts[-1] + len(line))
    return starts


def _offset(starts: list[int], position: Position) -> int:
    line, column = position
    if not 1 <= line <= len(starts) or column < 0:
        raise ValueError(f"no position {position} in a text of {len(starts) - 1} lines")
    at = starts[line - 1] + column
    if at > starts[min(line, len(starts) - 1)]:
        raise ValueError(f"no column {column} in line {line}")
    return at


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _bare(line: str) -> str:
    """A line without its end."""
    return line.rstrip("\r\n")


# ------------------------------------------------------------------ making edits


def insert_before(cell: int | None, text: str, at: int | ast.stmt, new: Sequence[str]) -> Edits:
    """Write lines before the statement at a line, or before a statement, as deep as that.

    A statement that something precedes on its line (``a(); b()``, ``if x: b()``) gets them on that line.
    """
    statement = _statement(text, at)
    if statement is None or not new:
        return ()
    start = _start(text, statement)
    line = with_ends(text)[start[0] - 1]
    before = line[: start[1]]
    if before.strip():
        return _beside(cell, start, new, "{}; ")
    return (TextEdit(start, start, "".join(f"{one}\n{before}" for one in _indented(new, before)), cell),)


def insert_after(cell: int | None, text: str, at: int | ast.stmt, new: Sequence[str]) -> Edits:
    """Write lines after the statement at a line (after all that begin on it), or after a statement, as deep as that.

    A statement that shares its line gets them on that line where it cannot be otherwise: ``if x: a()``, or ``a(); b()``
    where they belong after ``a()``. None after a block.
    """
    statement = _statement(text, at)
    if statement is None or not new or hasattr(statement, "body"):
        return ()
    if isinstance(at, int):
        statement = syntax.beginning_at(text, statement.lineno)[-1]
    lines, (_, end) = with_ends(text), span(text, statement)
    line = _bare(lines[end[0] - 1])
    first = syntax.beginning_at(text, statement.lineno)[0]
    before = lines[first.lineno - 1][: span(text, first)[0][1]]
    behind = line[end[1] :].lstrip(" \t;")
    if before.strip() or (behind and not behind.startswith("#")):
        return _beside(cell, end, new, "; {}")
    at_end = (end[0], len(line))
    return (TextEdit(at_end, at_end, "".join(f"\n{before}{one}" for one in _indented(new, before)), cell),)


def replace_line(cell: int | None, text: str, line: int, new: str) -> Edits:
    """Write `new` in place of a line, as deep as that. None where it is the same."""
    lines = with_ends(text)
    if not 1 <= line <= len(lines):
        return ()
    old, depth = _bare(lines[line - 1]), _indentation(_bare(lines[line - 1]))
    if old.strip() == new.strip():
        return ()
    return (TextEdit((line, len(depth)), (line, len(old.rstrip())), new.strip(), cell),)


def replace_node(cell: int | None, text: str, node: ast.AST, new: str) -> Edits:
    """Write `new` in place of a node. Further lines of a statement get the depth of its first."""
    start, end = span(text, node)
    if isinstance(node, ast.stmt):
        start = _start(text, node)
        new = f"\n{_indentation(with_ends(text)[start[0] - 1])}".join(new.split("\n"))
    edit = TextEdit(start, end, new, cell)
    return (edit,) if apply(text, [edit]) != text else ()


def remove(cell: int | None, text: str, statement: ast.stmt) -> Edits:
    """Take a statement out; ``pass`` stays where its block would be empty."""
    lines, start, end = with_ends(text), _start(text, statement), span(text, statement)[1]
    if len(syntax.block_of(text, statement)) < 2:
        return (TextEdit(start, end, "pass", cell),)
    line = _bare(lines[end[0] - 1])
    before, behind = lines[start[0] - 1][: start[1]], line[end[1] :]
    following = behind.lstrip(" \t;")
    if following and not following.startswith("#"):  # another statement is behind it
        return (TextEdit(start, (end[0], len(line) - len(following)), "", cell),)
    if before.strip():  # the last of several on a line
        return (TextEdit((start[0], len(before.rstrip(" \t;"))), end, "", cell),)
    if end[0] < len(lines):
        return (TextEdit((start[0], 0), (end[0] + 1, 0), "", cell),)
    last = (start[0] - 1, len(_bare(lines[start[0] - 2]))) if start[0] > 1 else (1, 0)
    return (TextEdit(last, (end[0], len(line)), "", cell),)


def _statement(text: str, at: int | ast.stmt) -> ast.stmt | None:
    """The innermost statement at a line; for an ``elif`` the whole `if`, because nothing fits between its branches."""
    if isinstance(at, ast.stmt):
        return at
    around = syntax.statements_at(text, at)
    while around and isinstance(around[-1], ast.If) and _is_elif(text, around[-1]):
        around.pop()
    return around[-1] if around else None


def _is_elif(text: str, statement: ast.If) -> bool:
    line, column = span(text, statement)[0]
    return with_ends(text)[line - 1][column:].startswith("elif")


def _start(text: str, statement: ast.stmt) -> Position:
    """Where a statement begins, with its decorators."""
    start = span(text, statement)[0]
    decorators = getattr(statement, "decorator_list", [])
    return (min(one.lineno for one in decorators), start[1]) if decorators else start


def _indented(new: Sequence[str], depth: str) -> Iterator[str]:
    """Lines; in one that is several, the further ones get the same depth."""
    return (one.replace("\n", f"\n{depth}") for one in new)


def _beside(cell: int | None, at: Position, new: Sequence[str], form: str) -> Edits:
    """Statements on the same line, if each is a simple one of one line."""
    trees = [syntax.parse(one) for one in new]
    simple = all(tree is not None and not any(hasattr(s, "body") for s in tree.body) for tree in trees)
    if not simple or any("\n" in one for one in new):
        return ()
    return (TextEdit(at, at, "".join(map(form.format, new)), cell),)


# ------------------------------------------------------------------ applying and showing edits


def in_order(edits: Iterable[TextEdit]) -> list[TextEdit]:
    """Edits of one text in the order of the text; of several insertions at one place the first given first."""
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


def apply(text: str, edits: Iterable[TextEdit]) -> str:
    """The text with edits of it applied, from the last to the first.

    Raises
    ------
    ValueError
        Two edits overlap, or one lies outside of the text.
    """
    starts, ordered = _offsets(text), in_order(edits)
    for one, next_one in zip(ordered, ordered[1:]):
        if next_one.start < one.end:
            raise ValueError(f"edits overlap at {next_one.start}")
    for edit in reversed(ordered):
        first, last = _offset(starts, edit.start), _offset(starts, edit.end)
        text = text[:first] + edit.new + text[last:]
    return text


def apply_to(cells: Mapping[int, str], edits: Iterable[TextEdit]) -> dict[int, str]:
    """The texts of all cells with edits applied, each to its cell.

    Raises
    ------
    ValueError
        As `apply`, or an edit is of no known cell.
    """
    texts = dict(cells)
    for cell, own in _by_cell(edits).items():
        if cell not in texts:
            raise ValueError(f"no cell {cell}")
        texts[cell] = apply(texts[cell], own)
    return texts


def _by_cell(edits: Iterable[TextEdit]) -> dict[int, list[TextEdit]]:
    cells: dict[int, list[TextEdit]] = {}
    for edit in edits:
        if edit.cell is None:
            raise ValueError("an edit without a cell")
        cells.setdefault(edit.cell, []).append(edit)
    return cells


def shown(text: str, edits: Iterable[TextEdit]) -> tuple[str, ...]:
    """What edits change, as lines to read: ``- old``, ``+ new``, and ``  context`` only beside what is inserted.

    Lines that belong together are moved left by what they have in common.
    """
    return tuple(line for group in _groups(text, in_order(edits)) for line in _shown(text, group))


def shown_in(cells: Mapping[int, str], edits: Iterable[TextEdit]) -> tuple[str, ...]:
    """`shown` for edits of several cells, in the order of the cells."""
    by_cell = _by_cell(edits)
    return tuple(line for cell, text in cells.items() for line in shown(text, by_cell.get(cell, ())))


def _groups(text: str, edits: list[TextEdit]) -> Iterator[list[TextEdit]]:
    """Edits that touch the same lines, together."""
    group: list[TextEdit] = []
    for edit in edits:
        if group and edit.start[0] > max(_last_line(one) for one in group):
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _last_line(edit: TextEdit) -> int:
    """The last line of which an edit changes anything: an end before the first column leaves its line alone."""
    return edit.end[0] - (edit.end[1] == 0 and edit.end > edit.start)


def _shown(text: str, group: list[TextEdit]) -> list[str]:
    first, last = group[0].start[0], max(map(_last_line, group))
    if all(edit.start == edit.end for edit in group):
        first, last = _context(text, first, last)
    lines = with_ends(text)
    rest = "".join(lines[last:])
    whole = apply(text, group)
    old = [_bare(line) for line in lines[first - 1 : last]]
    new = whole[_offsets(text)[first - 1] : len(whole) - len(rest)]
    steps = _difference(old, [_bare(line) for line in with_ends(new)])
    depth = min((len(_indentation(line)) for _, line in steps if line.strip()), default=0)
    return [f"{sign} {line[depth:]}" for sign, line in steps]


def _context(text: str, first: int, last: int) -> tuple[int, int]:
    """The lines of the simple statements at which something is inserted, if they are few."""
    around = [syntax.statements_at(text, line)[-1:] for line in (first, last)]
    simple = [s for found in around for s in found if not hasattr(s, "body")]
    start = min([first, *(s.lineno for s in simple)])
    end = max([last, *(s.end_lineno or last for s in simple)])
    return (start, end) if end - start < MOST_CONTEXT else (first, last)


def _difference(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """(sign, line): what is the same is shown where something is only inserted beside it."""
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    inserts = any(code == "insert" for code, *_ in codes)
    steps: list[tuple[str, str]] = []
    for code, i, j, k, m in codes:
        if code == "equal":
            steps += [(" ", line) for line in old[i:j]] if inserts else []
        else:
            steps += [("-", line) for line in old[i:j]] + [("+", line) for line in new[k:m]]
    return steps
