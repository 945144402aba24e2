"""How fixes name a call, and the earlier call with another keyword."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import root_name, where
from graphwidget.model import BackwardCall


def named(call: BackwardCall) -> str:
    """``In[2], line 4``; for a button's call, which has no line, its expression."""
    return where(call.place) or (f"`{root_name(call)}.backward()`" if call.place.button else f"call {call.n + 1}")


def with_keyword(setting: Setting, keyword: str) -> Edits:
    """The earlier call with one more keyword."""
    call = setting.reuse.earlier
    cell, line = call.place.cell, call.place.line
    if cell is None or line is None:
        return ()
    text = setting.text_of_cell(cell)
    statements = syntax.beginning_at(text, line) or syntax.statements_at(text, line)[-1:]
    return text_edit.with_keyword(cell, text, ast.Module(statements, []), keyword, root_name(call))
