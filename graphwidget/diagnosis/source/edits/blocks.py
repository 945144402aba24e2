"""Statements that are put into a block of their own: ``with torch.no_grad():``."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits

__all__ = ["in_block"]


def in_block(cell: int | None, text: str, head: str, first: ast.stmt, last: ast.stmt) -> Edits:
    """The lines from one statement to another of its block, below `head`. Empty: they share lines, or would change."""
    end = last.end_lineno or last.lineno
    lines = source.lines_of(text)[first.lineno - 1 : end]
    depth = len(lines[0]) - len(lines[0].lstrip())
    bare = (line[depth:] if not line[:depth].strip() else line.lstrip() for line in lines)
    block = [head, *(f"    {line}" if line.strip() else "" for line in bare)]
    inside = [first, *(one for one in source.behind(text, first) if one.lineno <= end)]
    made = source.statement_of("\n".join(block))
    same = isinstance(made, ast.With) and [ast.dump(one) for one in made.body] == [ast.dump(one) for one in inside]
    return text_edit.replace_lines(cell, text, first.lineno, end, block) if same else ()
