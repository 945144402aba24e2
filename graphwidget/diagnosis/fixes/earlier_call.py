"""How fixes name a call, and give the earlier one another keyword."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import edits, syntax
from graphwidget.diagnosis.wording import root_name, where
from graphwidget.model import BackwardCall


def named(call: BackwardCall) -> str:
    """``In[2], line 4``; for a button's call, which has no line, what it ran."""
    return where(call.place) or (f"`{root_name(call)}.backward()`" if call.place.button else f"call {call.n + 1}")


def with_keyword(setting: Setting, keyword: str) -> edits.Edit:
    """The earlier call with one more keyword; written on one line where it was written over several."""
    call = setting.reuse.earlier
    cell = setting.text_of_cell(call.place.cell)
    found = syntax.statements_at(cell, call.place.line) if call.place.line is not None else []
    if found and not hasattr(found[-1], "body") and found[-1].lineno != found[-1].end_lineno:
        edit = edits.with_keyword(ast.unparse(found[-1]), keyword)
        return (*(f"- {line}" for line in edits.statement_text(cell, found[-1])), *edit[1:]) if edit else ()
    return edits.with_keyword(setting.text_of(call.place), keyword, root_name(call))
