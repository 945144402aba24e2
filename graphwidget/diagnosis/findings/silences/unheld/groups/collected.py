"""Leaves that a program collects for an optimizer, in a variable that it then hands to nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, finding_of, named, parts_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, short
from graphwidget.model import CellRun, Finding, Fix, Record, UnheldLeaf

__all__ = ["Collected", "collected", "filled", "handed_to_nothing", "is_of", "module_of"]

_ALL_OF = ("parameters", "named_parameters")
_FILLING = ("append", "add", "extend", "update", "insert")


class Collected(NamedTuple):
    """Parameters of `module` that `line` puts into the variable `name`, which nothing reads after `last`."""

    line: Line
    module: str
    name: str
    last: ast.stmt


def collected(record: Record) -> list[Collected]:
    """What is collected for an optimizer and then left."""
    found = []
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        if tree is None:
            continue
        others = (one for one in Cells.of(record).latest if one is not run and one.file == run.file)
        trees = [syntax.parse(one.source) for one in others]
        elsewhere = {name for other in trees if other is not None for name in syntax.words_in(other)}
        found += [one for one in _left(run, tree.body) if one.name not in elsewhere]
        found += [one for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) for one in _left(run, each.body)]
    return found


def _left(run: CellRun, body: list[ast.stmt]) -> Iterator[Collected]:
    """Of a body that makes an optimizer."""
    if not any(OPTIMIZER.search(ast.unparse(one)) for one in syntax.own_statements(body)):
        return
    for index, statement in enumerate(body):
        for line, module, name in _collecting(statement):
            if not any(name in syntax.names_in(one) for one in body[index + 1 :]):
                yield Collected(Line(run, line), module, name, statement)


def _collecting(statement: ast.stmt) -> Iterator[tuple[ast.stmt, str, str]]:
    """(line, module, variable) of a loop over parameters, or a comprehension of them, that a variable gets."""
    if isinstance(statement, ast.For) and (module := module_of(statement.iter)):
        taken = {node.id for node in ast.walk(statement.target) if isinstance(node, ast.Name)}
        for one in syntax.own_statements(statement.body):
            into = filled(one)
            if into is not None and taken & syntax.names_in(into[1]):
                yield one, module, root_of(into[0])
    elif isinstance(statement, ast.Assign) and _is_list(statement.value) and (module := module_of(statement.value)):
        names = [one.id for one in statement.targets if isinstance(one, ast.Name)]
        yield from ((statement, module, name) for name in names)


def _is_list(value: ast.expr) -> bool:
    made = isinstance(value, ast.Call) and ast.unparse(value.func) in ("list", "tuple", "filter", "dict")
    return made or isinstance(value, (ast.ListComp, ast.GeneratorExp, ast.DictComp))


def module_of(node: ast.expr) -> str:
    """The module whose parameters an expression takes; empty: it takes none."""
    called = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    asked = [one for one in called if isinstance(one, ast.Attribute) and one.attr in _ALL_OF]
    return ast.unparse(asked[0].value) if asked else ""


def filled(statement: ast.stmt) -> tuple[str, ast.AST] | None:
    """The container that a statement puts something into, and what it puts there."""
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return (ast.unparse(value.func.value), value) if value.func.attr in _FILLING else None
    if isinstance(statement, ast.AugAssign):
        return ast.unparse(statement.target), statement.value
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return ast.unparse(statement.targets[0]), statement.value
    return None


def is_of(one: Collected, leaf: UnheldLeaf) -> bool:
    """Whether a leaf's path leads through the module whose parameters were collected."""
    return one.module.rsplit(".", 1)[-1] in parts_of(leaf.path)[:-1]


def handed_to_nothing(one: Collected, leaves: list[UnheldLeaf]) -> Finding:
    """The finding for leaves that were collected and left."""
    shown = named(leaves)
    why = f"{one.line.shown} collects parameters in `{one.name}`, and no line behind it reads `{one.name}`."
    handing = _handing(one)
    new = ast.unparse(handing) if handing is not None else ""
    text = one.line.run.source
    behind = syntax.behind(text, one.last)
    fix = Fix(
        "new_optimizer",
        f"Hand them on, too: {short(new)} behind that loop, as before."
        if new
        else f"Give `{one.name}` to the optimizer.",
        False,
        at(one.line.place),
        "They are trained then.",
        edits=text_edit.insert_before(one.line.run.cell, text, behind[0], [new]) if new and behind else (),
    )
    return finding_of(shown, one.line.place, why, leaves, fix)


def _handing(one: Collected) -> ast.stmt | None:
    """The statement that handed on what an earlier loop had collected in the same variable."""
    block = [s for s in syntax.block_of(one.line.run.source, one.last) if s.lineno < one.last.lineno]
    for before, after in zip(block, block[1:]):
        collects = any(name == one.name for _, _, name in _collecting(before))
        if collects and isinstance(after, ast.Expr) and one.name in syntax.names_read(after):
            return after
    return None
