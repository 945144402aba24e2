"""Leaves that are attributes of a module, and no parameters."""

from __future__ import annotations

import ast
import re

from graphwidget.diagnosis.findings.silences.unheld.leaves import (
    Line,
    classes_in,
    finding_of,
    named,
    torch_nn,
)
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, spoken
from graphwidget.model import Finding, Fix, Record, UnheldLeaf

__all__ = ["is_no_parameter", "plain_attribute"]


def plain_attribute(record: Record, leaf: UnheldLeaf) -> Line | None:
    """The one statement of a module's constructor that makes a tensor which requires grad and is no parameter.

    None if some code reads its `.grad`: then the gradient has a use.
    """
    name = spoken(leaf.path).rpartition(".")[2]
    texts = Cells.of(record).latest
    found = [
        Line(run, one)
        for run in texts
        for cls in classes_in(run)
        if any("Module" in ast.unparse(base) for base in cls.bases)
        for one in ast.walk(cls)
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and list(syntax.targets(one)) == [f"self.{name}"]
    ]
    used = any(re.search(rf"\b{re.escape(name)}\.grad\b", run.source) for run in texts)
    if len(found) != 1 or used or "." not in spoken(leaf.path) or not _without_flag(found[0].statement):
        return None
    inside = syntax.function_at(found[0].run.source, found[0].statement.lineno)
    return found[0] if inside is not None and inside[1].name == "__init__" else None


def _without_flag(statement: ast.stmt) -> str:
    """``torch.zeros(2)`` of ``self.w = torch.zeros(2, requires_grad=True)``; empty if it sets no such flag."""
    value = syntax.given(statement)
    if not isinstance(value, ast.Call):
        return ""
    if isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_" and not value.args:
        return ast.unparse(value.func.value)
    kept = [one for one in value.keywords if one.arg != "requires_grad"]
    flagged = len(kept) < len(value.keywords)
    if flagged and ast.unparse(value.func).rpartition(".")[2] == "Variable" and len(value.args) == 1:
        return ast.unparse(value.args[0])
    return ast.unparse(ast.Call(value.func, value.args, kept)) if flagged else ""


def is_no_parameter(record: Record, line: Line, leaf: UnheldLeaf) -> Finding:
    value, new = syntax.given(line.statement), f"{torch_nn(record, line.run)}.Parameter"
    return finding_of(
        named([leaf]),
        line.place,
        f"{line.shown} makes a plain tensor. A module registers only modules and parameters, so `parameters()` does "
        "not list it.",
        [leaf],
        Fix(
            "register_modules",
            f"Make it a parameter with `{new}`: then `parameters()` has it, and `.to(device)` and `state_dict()` too.",
            False,
            at(line.place),
            edits=text_edit.replace_node(
                line.run.cell, line.run.source, value, f"{new}({_without_flag(line.statement)})"
            ),
        ),
    )
