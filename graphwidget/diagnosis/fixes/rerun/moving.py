"""Statements that a fix puts into a loop: moved there, where nothing else reads what they make, or run there again."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphwidget.diagnosis.fixes.rerun.rerun import Statement
from graphwidget.diagnosis.fixes.rerun.statements import Target
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits

__all__ = ["taken_out"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def taken_out(setting: Setting, target: Target, again: Sequence[Statement]) -> Edits:
    """The edits that take statements away from where they stand before a loop; empty where they have to stay.

    They stay where they are in another cell or block than the loop, and where anything but its body reads their names.
    """
    nodes, loop = [one.node for one in again], target.loop
    if loop is None or any(one.run.source != target.text or one.run.cell != target.cell for one in again):
        return ()
    block = syntax.block_of(target.text, loop)
    names = set[str]().union(*map(syntax.changed, nodes))
    if not all(_only_assigns(one) and one in block and one.lineno < loop.lineno for one in nodes):
        return ()
    inside = {id(node) for statement in (*nodes, *loop.body) for node in ast.walk(statement)}
    if any(node.id in names and id(node) not in inside for node in _reads(setting, target, loop)):
        return ()
    return text_edit.remove(target.cell, target.text, *nodes)


def _only_assigns(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but give variables values."""
    names = list(syntax.targets(statement))
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and all(name.isidentifier() for name in names)


def _reads(setting: Setting, target: Target, loop: ast.stmt) -> Iterator[ast.Name]:
    """Where a block's variables may be read from now on: in its function; or else in its cell, and in any function."""
    function = syntax.function_at(target.text, loop.lineno)
    trees: list[ast.AST] = [function[1]] if function is not None else []
    for text in dict.fromkeys(run.source for run in setting.reuse.record.runs.values()) if function is None else ():
        tree = syntax.parse(text)
        if tree is not None and text == target.text:
            trees.append(tree)
        elif tree is not None:
            trees += [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    nodes = (node for tree in trees for node in ast.walk(tree))
    return (node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
