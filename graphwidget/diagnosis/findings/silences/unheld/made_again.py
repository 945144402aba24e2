"""The line that makes an optimizer, once more behind the line that replaces what it was made of."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Record

__all__ = ["made_again"]


def made_again(record: Record, maker: Line, replacing: Line) -> text_edit.Edits:
    """``self.opt = SGD(self.net.parameters(), lr=self.config.lr)`` behind ``self.net = copy.deepcopy(best)``.

    Empty where the line cannot do it there: in another function than its variable; before the optimizer is made; or
    with values that only the line of the optimizer has. A scheduler would go on with the old optimizer.
    """
    text = maker.run.source
    simple = isinstance(maker.statement, ast.Assign) and isinstance(replacing.statement, (ast.Assign, ast.AnnAssign))
    if replacing.run is not maker.run or not simple or _has_schedules(record):
        return ()
    home, there = (syntax.function_at(text, one.statement.lineno) for one in (maker, replacing))
    lines = text_edit.statement_lines(text, maker.statement)
    if home != there:
        if home is None or there is None or home[0] is None or home[0] is not there[0]:
            return ()
        of_object = all(name.startswith("self.") for name in syntax.targets(maker.statement))
        lines = _by_attributes(maker.statement, home[1]) if of_object and home[1].name == "__init__" else []
    elif replacing.statement.lineno < maker.statement.lineno:
        return ()
    return text_edit.insert_after(maker.run.cell, text, replacing.statement, lines) if lines else ()


def _has_schedules(record: Record) -> bool:
    return any("lr_scheduler" in text or "LambdaLR" in text for text in Cells.of(record).texts.values())


def _by_attributes(statement: ast.stmt, constructor: ast.FunctionDef) -> list[str]:
    """A statement of a constructor, as other methods write it; empty: it needs what the object does not keep."""
    kept = {
        one.value.id: ast.unparse(one.targets[0])
        for one in syntax.own_statements(constructor.body)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name) and isinstance(one.targets[0], ast.Attribute)
    }
    arguments = {one.arg for one in (*constructor.args.args, *constructor.args.kwonlyargs)} - {"self"}
    local = arguments.union(*(syntax.bound(one) for one in syntax.own_statements(constructor.body)))
    if not (syntax.names_in(statement) & local) <= {*kept}:
        return []

    class Attributes(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
            return ast.parse(kept[node.id], mode="eval").body if node.id in kept else node

    copied = ast.parse(ast.unparse(statement)).body[0]
    return ast.unparse(Attributes().visit(copied)).splitlines()
