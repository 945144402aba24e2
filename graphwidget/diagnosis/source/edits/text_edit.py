"""Edits of a cell's text: how to make them, how to apply them, and how to show them to a person.

All functions are pure. `text` is the text of the cell before any edit, `cell` its number. A function that cannot make
the edit returns an empty tuple. A line, or a statement of the parsed text, says where the edit belongs.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits.difference import difference
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


def offsets(text: str) -> list[int]:
    """Where each line begins in the text, and where the text ends."""
    starts = [0]
    for line in with_ends(text):
        starts.append(starts[-1] + len(line))
    return starts


def offset_of(starts: list[int], position: Position) -> int:
    line, column = position
    if not 1 <= line <= len(starts) or column < 0:
        raise ValueError(f"no position {position} in a text of {len(starts) - 1} lines")
    at = starts[line - 1] + column
    if at > starts[min(line, len(starts) - 1)]:
        raise ValueError(f"no column {column} in line {line}")
    return at


def statement_lines(text: str, statement: ast.stmt) -> list[str]:
    """The lines of a statement without its indentation."""
    lines = syntax.lines_of(text)[statement.lineno - 1 : statement.end_lineno]
    depth = len(_indentation(lines[0])) if lines else 0
    return [line[depth:] if not line[:depth].strip() else line.lstrip() for line in lines]


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _bare(line: str) -> str:
    """A line without its end."""
    return line.rstrip("\r\n")


# ------------------------------------------------------------------ making edits


def insert_before(cell: int | None, text: str, at: int | ast.stmt, new: Sequence[str]) -> Edits:
    """Write lines before the statement at a line, or before a statement, with its indentation.

    If something precedes the statement on its line (``a(); b()``, ``if x: b()``), they go on that line.
    """
    statement = _statement(text, at)
    if statement is None or not new:
        return ()
    start = _start(text, statement)
    line = with_ends(text)[start[0] - 1]
    before = line[: start[1]]
    if before.strip():
        return _on_same_line(cell, start, new, "{}; ")
    return (TextEdit(start, start, "".join(f"{one}\n{before}" for one in _indented(new, before)), cell),)


def insert_after(cell: int | None, text: str, at: int | ast.stmt, new: Sequence[str]) -> Edits:
    """Write lines after the statement at a line (after all that begin there), or after a statement, indented like it.

    If the statement shares its line, they go on that line only where it is necessary: ``if x: a()``, or ``a(); b()`` if
    they belong after ``a()``. Empty after a block.
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
        return _on_same_line(cell, end, new, "; {}")
    at_end = (end[0], len(line))
    return (TextEdit(at_end, at_end, "".join(f"\n{before}{one}" for one in _indented(new, before)), cell),)


def insert_behind_block(cell: int | None, text: str, block: ast.stmt, new: Sequence[str]) -> Edits:
    """Write lines behind a statement with a block, indented like its head. Empty if it shares a line with others."""
    lines, (first, last) = with_ends(text), (block.lineno, block.end_lineno or block.lineno)
    depth, end = _indentation(_bare(lines[first - 1])), _bare(lines[last - 1])
    own = syntax.statements_at(text, last)[-1:]
    if len(depth) != span(text, block)[0][1] or any(span(text, one)[1] < span(text, block)[1] for one in own):
        return ()
    at_end = (last, len(end))
    return (TextEdit(at_end, at_end, "".join(f"\n{depth}{one}".rstrip(" \t") for one in _indented(new, depth)), cell),)


def replace_line(cell: int | None, text: str, line: int, new: str) -> Edits:
    """Write `new` in place of a line, with its indentation. Empty if the line is the same."""
    lines = with_ends(text)
    if not 1 <= line <= len(lines):
        return ()
    old, depth = _bare(lines[line - 1]), _indentation(_bare(lines[line - 1]))
    if old.strip() == new.strip():
        return ()
    return (TextEdit((line, len(depth)), (line, len(old.rstrip())), new.strip(), cell),)


def replace_node(cell: int | None, text: str, node: ast.AST, new: str) -> Edits:
    """Write `new` in place of a node. Further lines of a statement get the indentation of its first."""
    start, end = span(text, node)
    if isinstance(node, ast.stmt):
        start = _start(text, node)
        new = f"\n{_indentation(with_ends(text)[start[0] - 1])}".join(new.split("\n"))
    edit = TextEdit(start, end, new, cell)
    return (edit,) if apply(text, [edit]) != text else ()


def replace_lines(cell: int | None, text: str, first: int, last: int, new: Sequence[str]) -> Edits:
    """Write other lines in place of some, with the indentation of the first of these."""
    lines = with_ends(text)[first - 1 : last]
    if not lines:
        return ()
    depth = _indentation(_bare(lines[0]))
    whole = "\n".join(f"{depth}{one}" if one else "" for one in new)[len(depth) :]
    return (TextEdit((first, len(depth)), (last, len(_bare(lines[-1]))), whole, cell),)


def replace_in(cell: int | None, text: str, node: ast.AST, old: str, new: str) -> Edits:
    """Write `new` wherever the text of a node has `old`."""
    start, end = span(text, node)
    lines = with_ends(text)[start[0] - 1 : end[0]]
    found: list[TextEdit] = []
    for number, line in enumerate(lines, start[0]):
        first, last = start[1] if number == start[0] else 0, end[1] if number == end[0] else len(line)
        spots = (first + one.start() for one in re.finditer(re.escape(old), line[first:last]))
        found += [TextEdit((number, at), (number, at + len(old)), new, cell) for at in spots]
    return tuple(found)


def wrapped(cell: int | None, text: str, node: ast.AST, opening: str) -> Edits:
    """Write a call around a node: ``nn.ModuleList(`` before it, and the bracket behind it."""
    start, end = span(text, node)
    return (TextEdit(start, start, opening, cell), TextEdit(end, end, ")", cell))


def insert_behind(cell: int | None, text: str, node: ast.AST, new: str) -> Edits:
    """Write `new` right behind a node: ``.clone()``."""
    end = span(text, node)[1]
    return (TextEdit(end, end, new, cell),)


def insert_before_attribute(cell: int | None, text: str, node: ast.Attribute, new: str) -> Edits:
    """Write `new` before the dot of an attribute: behind the bracket in ``(a * b).backward``."""
    at = dot_of(text, node)
    return (TextEdit(at, at, new, cell),)


def dot_of(text: str, node: ast.Attribute) -> Position:
    """Where the dot of an attribute is."""
    (first, column), (last, end) = span(text, node.value)[1], span(text, node)[1]
    lines = with_ends(text)
    for number in range(last, first - 1, -1):
        line = lines[number - 1][: end - len(node.attr)] if number == last else lines[number - 1]
        at = line.rfind(".")
        if at >= (column if number == first else 0):
            return number, at
    return first, column


def with_keyword(cell: int | None, text: str, statement: ast.AST, keyword: str, root: str = "") -> Edits:
    """Add ``retain_graph=True``, or the like, to a statement's call of backward or grad; if several, that of `root`.

    A call that has the argument already gets the new value.
    """
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    calls = [call for call in calls if syntax.last_name(ast.unparse(call.func)) in ("backward", "grad")]
    calls.sort(key=lambda call: not ast.unparse(call).startswith(f"{root}.backward("))
    return with_argument(cell, text, calls[0], keyword) if calls else ()


def with_argument(cell: int | None, text: str, call: ast.Call, keyword: str) -> Edits:
    """Add an argument (``static_graph=True``) to a call. A call that has it already gets the new value."""
    name, value = keyword.split("=", 1)
    given = next((one for one in call.keywords if one.arg == name), None)
    if given is not None:
        return replace_node(cell, text, given.value, value)
    at, comma = _end_of_arguments(text, call)
    return (TextEdit(at, at, comma + keyword, cell),)


def _end_of_arguments(text: str, call: ast.Call) -> tuple[Position, str]:
    """Where one more argument of a call is written, and the comma before it.

    This is behind the last argument; if that stands in brackets or a comment follows it, before the closing bracket.
    """
    line, column = span(text, call)[1]
    given = [*call.args, *(one.value for one in call.keywords)]
    ends = sorted(span(text, one)[1] for one in given)
    if not ends:
        return (line, column - 1), ""
    starts = offsets(text)
    behind = text[offset_of(starts, ends[-1]) : offset_of(starts, (line, column - 1))].strip()
    if behind in ("", ","):
        return ends[-1], ", "
    return (line, column - 1), "" if behind.endswith(",") else ", "


def remove(cell: int | None, text: str, *statements: ast.stmt) -> Edits:
    """Remove statements; ``pass`` is written where a block would be empty. A cell may be empty."""
    out = {_start(text, statement) for statement in statements}
    found: list[TextEdit] = []
    for line in sorted({start[0] for start in out}):
        there = [s for s in statements if _start(text, s)[0] == line]
        shared = [s for s in syntax.beginning_at(text, line) if s in syntax.block_of(text, there[0])] or there
        kept = [s for s in shared if _start(text, s) not in out]
        inside = span(text, there[0])[0][1] > 0
        emptied = inside and all(_start(text, s) in out for s in syntax.block_of(text, there[0]))
        if emptied and line == min(_start(text, s)[0] for s in syntax.block_of(text, there[0])):
            new = "pass"
        else:
            new = "; ".join(ast.get_source_segment(text, s) or ast.unparse(s) for s in kept)
        first, end = _start(text, shared[0]), span(text, shared[-1])[1]
        found.append(TextEdit(first, end, new, cell) if new else _whole_lines(cell, text, first[0], end[0]))
    return tuple(found)


def _whole_lines(cell: int | None, text: str, first: int, last: int) -> TextEdit:
    """Remove lines with their ends."""
    lines = with_ends(text)
    if last < len(lines) or lines[last - 1].endswith(("\n", "\r")) or first == 1:
        return TextEdit((first, 0), (last + 1, 0), "", cell)
    before = (first - 1, len(_bare(lines[first - 2])))
    return TextEdit(before, (last, len(lines[last - 1])), "", cell)


def _statement(text: str, at: int | ast.stmt) -> ast.stmt | None:
    """The innermost statement at a line; for an ``elif`` the whole `if`, as nothing can stand between its branches."""
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
    """Lines; of a text with several lines, the further ones get the same indentation."""
    return (one.replace("\n", f"\n{depth}") for one in new)


def _on_same_line(cell: int | None, at: Position, new: Sequence[str], form: str) -> Edits:
    """Write statements on the same line, if each is a simple statement of one line."""
    trees = [syntax.parse(one) for one in new]
    simple = all(tree is not None and not any(hasattr(s, "body") for s in tree.body) for tree in trees)
    if not simple or any("\n" in one for one in new):
        return ()
    return (TextEdit(at, at, "".join(map(form.format, new)), cell),)


# ------------------------------------------------------------------ applying and showing edits


def in_order(edits: Iterable[TextEdit]) -> list[TextEdit]:
    """Edits of one text in the order of the text; insertions at one place in the given order."""
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


def apply(text: str, edits: Iterable[TextEdit]) -> str:
    """The text with edits of it applied, from the last to the first.

    Raises
    ------
    ValueError
        Two edits overlap, or one lies outside of the text.
    """
    starts, ordered = offsets(text), in_order(edits)
    for one, next_one in zip(ordered, ordered[1:]):
        if next_one.start < one.end:
            raise ValueError(f"edits overlap at {next_one.start}")
    for edit in reversed(ordered):
        first, last = offset_of(starts, edit.start), offset_of(starts, edit.end)
        text = text[:first] + edit.new + text[last:]
    return text


def between(before: str, after: str, cell: int | None = None, file: str | None = None) -> Edits:
    """Edits of whole lines that turn one text into another."""
    old, new = with_ends(before), with_ends(after)
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return tuple(
        TextEdit((i + 1, 0), (j + 1, 0), "".join(new[k:m]), cell, file) for code, i, j, k, m in steps if code != "equal"
    )


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
    """What edits change, as lines to read: ``- old``, ``+ new``, and ``  context`` only before or after insertions.

    All lose the indentation that they share, and no more: a line that stands deeper than another one is seen to.
    """
    found: list[tuple[str, str]] = []
    for _, steps in _changes(text, edits):
        signs = "".join(sign for sign, _ in steps)
        inserts = " +" in f" {signs}"
        lines = [(sign, line) for sign, line in steps if sign != " " or inserts]
        while lines and lines[-1][0] == " " and not lines[-1][1].strip():
            lines.pop()
        found += lines
    depth = min((len(_indentation(line)) for _, line in found if line.strip()), default=0)
    return tuple(f"{sign} {line[depth:]}" for sign, line in found)


def new_text(text: str, edits: Iterable[TextEdit]) -> str:
    """The lines that edits write, as one line: to quote in a sentence. Of a line of several statements the new ones."""
    lines = shown(text, edits)
    before = {part for line in lines if line.startswith("-") for part in line[2:].strip().split("; ")}
    parts = [line[2:].strip().split("; ") for line in lines if line.startswith("+")]
    return " ".join("; ".join([one for one in line if one not in before] or line) for line in parts)


def shown_in(cells: Mapping[int, str], edits: Iterable[TextEdit]) -> tuple[str, ...]:
    """`shown` for edits of several cells, in the order of the cells."""
    by_cell = _by_cell(edits)
    return tuple(line for cell, text in cells.items() for line in shown(text, by_cell.get(cell, ())))


def written(text: str, edits: Iterable[TextEdit]) -> list[int]:
    """The lines that edits write, by their numbers in the edited text."""
    found: list[int] = []
    more = 0  # lines that the edits further up have added
    for first, steps in _changes(text, edits):
        new = [sign for sign, _ in steps if sign != "-"]
        found += [first + more + at for at, sign in enumerate(new) if sign == "+"]
        more += len(new) - sum(sign != "+" for sign, _ in steps)
    return found


def _changes(text: str, edits: Iterable[TextEdit]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """For edits that touch the same lines: the first of these, and (sign, line) for each that was or is there."""
    lines, starts = with_ends(text), offsets(text)
    for group in _groups(lines, in_order(edits)):
        first, last = group[0].start[0], max(map(_last_line, group))
        if all(edit.start == edit.end for edit in group):
            first, last = _context(text, first, last)
        whole, rest = apply(text, group), sum(map(len, lines[last:]))
        old = syntax.lines_of("".join(lines[first - 1 : last]))
        new = syntax.lines_of(whole[starts[first - 1] : len(whole) - rest])
        yield first, difference(old, new, from_the_end=not group[0].new)


def _groups(lines: Sequence[str], edits: list[TextEdit]) -> Iterator[list[TextEdit]]:
    """Edits that touch the same lines, together; a move into a block with the one line that is the head of it."""
    group: list[TextEdit] = []
    for edit in edits:
        last = max(map(_last_line, group), default=0)
        into = group and not group[-1].new and lines[min(last, len(lines) - 1)].rstrip().endswith(":")
        if group and edit.start[0] > last + (2 if into else 0):
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _last_line(edit: TextEdit) -> int:
    """The last line that an edit changes: not the line of an end at column 0."""
    return edit.end[0] - (edit.end[1] == 0 and edit.end > edit.start)


def _context(text: str, first: int, last: int) -> tuple[int, int]:
    """The lines of the simple statements where something is inserted, if they are few; a blank line shows nothing."""
    lines = syntax.lines_of(text)
    while 1 < first <= len(lines) and not lines[first - 1].strip():
        first -= 1
    around = [syntax.statements_at(text, line)[-1:] for line in (first, last)]
    simple = [s for found in around for s in found if not hasattr(s, "body")]
    start = min([first, *(s.lineno for s in simple)])
    end = max([last, *(s.end_lineno or last for s in simple)])
    return (start, end) if end - start < MOST_CONTEXT else (first, last)
