"""Edits of a cell's text, as fixes propose them.

An edit is a list of lines that is applied from the line `at` on: ``- x`` removes the next line whose text is `x`,
``  x`` steps over it, ``+ x`` writes a line at that place, as deep as its neighbour.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.inplace_statements import written as written
from graphwidget.diagnosis.source.syntax import statement_of as statement_of

Edit = tuple[str, ...]


def statement_text(cell: str, statement: ast.stmt) -> list[str]:
    """The lines of a statement without the indentation it stands at."""
    lines = cell.splitlines()[statement.lineno - 1 : statement.end_lineno]
    depth = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    return [line[depth:] if not line[:depth].strip() else line.lstrip() for line in lines]


def before(cell: str, line: int, new: Collection[str]) -> Edit:
    """Write lines before the statement at `line`."""
    return (*(f"+ {one}" for one in new), f"  {source.line_text(cell, line)}")


def after(cell: str, line: int, new: Collection[str]) -> Edit:
    """Write lines after the statement at `line`, or after all on that line; nothing where a block hangs on it."""
    found = source.statements_at(cell, line)
    if not found or hasattr(found[-1], "body"):
        return ()
    beginning = cell.splitlines()[found[-1].lineno - 1].encode()[: found[-1].col_offset]
    if beginning.strip():
        return ()
    last = source.last_line(cell, found[-1].lineno)
    kept = [f"  {one.strip()}" for one in cell.splitlines()[line - 1 : last]]
    return (*kept, *(f"+ {one}" for one in new))


def replaced(old: str, new: str) -> Edit:
    return (f"- {old.strip()}", f"+ {new.strip()}") if old.strip() != new.strip() else ()


def with_keyword(line: str, keyword: str, root: str = "") -> Edit:
    """Add ``retain_graph=True``, or the like, to the backward or grad call of a line: the one on `root`, of several."""
    name = keyword.split("=", 1)[0]
    calls = [call for call in _calls(line) if ast.unparse(call.func).rsplit(".", 1)[-1] in ("backward", "grad")]
    calls.sort(key=lambda call: not ast.unparse(call).startswith(f"{root}.backward("))
    for call in calls:
        given = next((k for k in call.keywords if k.arg == name), None)
        raw = line.encode()
        if given is not None and given.value.end_col_offset is not None:
            start, end = given.value.col_offset, given.value.end_col_offset
            text = raw[:start] + keyword.split("=", 1)[1].encode() + raw[end:]
        else:
            end = (call.end_col_offset or len(raw)) - 1
            comma = b", " if call.args or call.keywords else b""
            text = raw[:end] + comma + keyword.encode() + raw[end:]
        return replaced(line, text.decode())
    return ()


def in_front(edit: Edit) -> Edit:
    """An edit that writes lines in front of one, as one that finds that line first."""
    new = [step for step in edit if step.startswith("+")]
    if not edit or not edit[0].startswith("+") or edit != (*new, f"  {edit[-1][2:]}"):
        return edit
    return (f"- {edit[-1][2:]}", *new, f"+ {edit[-1][2:]}")


def _calls(line: str) -> Iterator[ast.Call]:
    try:
        tree = ast.parse(line)
    except (SyntaxError, ValueError):
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def with_name(line: str, name: str, new: str) -> Edit:
    """Read `new` wherever a line reads `name`."""
    left, sign, right = _assignment(line)
    changed = re.sub(rf"(?<![\w.\]]){re.escape(name)}(?![\w\[(=]|\s*=[^=])(?!\.detach\b)", lambda _: new, right)
    return replaced(line, left + sign + changed) if changed != right else ()


def _assignment(line: str) -> tuple[str, str, str]:
    """What stands left of an assignment's sign, the sign, and the right side."""
    try:
        tree = ast.parse(line)
    except (SyntaxError, ValueError):
        return "", "", line
    first = tree.body[0] if tree.body else None
    if isinstance(first, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and first.value is not None:
        start = len(line.encode()[: first.value.col_offset].decode())
        return line[:start], "", line[start:]
    return "", "", line
