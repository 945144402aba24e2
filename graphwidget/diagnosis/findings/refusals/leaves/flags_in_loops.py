"""Flags of computed tensors that a loop is to switch off: ``for f in feats: f.requires_grad = False``."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.blocks import in_block
from graphwidget.diagnosis.wording import names
from graphwidget.model import Fix

__all__ = ["frozen_where_made"]


def frozen_where_made(failure: Failure, name: str) -> Fix | None:
    """The line that computes all that a loop goes over computes it without a graph, and the loop goes.

    None: the loop does more than that, several lines compute it, or one that computes more.
    """
    cell, text, statement = failure.place.cell, failure.cell, failure.statement
    loop = syntax.loop_at(text, failure.place.line or 0)
    if statement is None or not isinstance(loop, ast.For) or loop.body != [statement] or loop.orelse:
        return None
    if ast.unparse(loop.target) != name:
        return None
    wanted = syntax.names_in(loop.iter)
    block = syntax.block_of(text, loop)
    made = [one for one in block if one.lineno < loop.lineno and wanted & set(syntax.targets(one))]
    if len(made) != 1 or not isinstance(syntax.given(made[0]), ast.Call):
        return None
    if wanted != set(syntax.targets(made[0])):  # what else the line computes may be trained
        return None
    edits = in_block(cell, text, "with torch.no_grad():", made[0], made[0])
    shown = names(tuple(sorted(wanted)))
    return failure.fix(
        "under_no_grad",
        f"Compute {shown} under `with torch.no_grad():`, and leave the loop out: then nothing of it requires grad.",
        (*edits, *text_edit.remove(cell, text, loop)) if edits else (),
        price=f"No gradient flows back through {shown}.",
    )
