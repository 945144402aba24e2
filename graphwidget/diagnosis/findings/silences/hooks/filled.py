"""What a hook fills, and whether a line that raised reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.no_graph.measured import run_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at
from graphwidget.model import CellRun, Record, TextLine

__all__ = ["Hook", "filled_by", "function_of", "reads"]

Hook = ast.FunctionDef | ast.Lambda
_DEPTH = 2  # calls of the program's own functions that are followed from a hook
_HOPS = 3  # from a line to what its variables were made of, and to what functions return
_OWNERS = frozenset({"self", "cls"})


def function_of(record: Record, line: TextLine) -> Hook | None:
    """The function, or the lambda, that begins at a line."""
    run = run_of(record, line)
    for node in syntax.nodes_of(run.source) if run is not None else ():
        if isinstance(node, ast.FunctionDef):
            if line.line in (node.lineno, *(one.lineno for one in node.decorator_list)):
                return node
        elif isinstance(node, ast.Lambda) and node.lineno == line.line:
            return node
    return None


def filled_by(record: Record, hook: Hook) -> tuple[str, ...]:
    """The last names of what a hook writes to, its own variables apart: ``gradients`` for ``self.gradients[k]``."""
    return tuple(dict.fromkeys(_filled(Cells.of(record).latest, hook, _DEPTH)))


def _filled(runs: list[CellRun], hook: Hook, depth: int) -> Iterator[str]:
    body = hook.body if isinstance(hook.body, list) else [hook.body]
    nodes = [node for one in body for node in ast.walk(one)]
    shared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} - shared
    own |= {one.arg for one in (*hook.args.args, *hook.args.kwonlyargs)} - _OWNERS
    for node in nodes:
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Name)) and isinstance(node.ctx, ast.Store):
            yield from _name(node, own)
        elif isinstance(node, ast.Call):
            called = syntax.last_name(ast.unparse(node.func))
            functions = [one for run in runs for one in _functions(run, called)] if depth else []
            for function in functions:
                yield from _filled(runs, function, depth - 1)
            if isinstance(node.func, ast.Attribute) and not functions:
                yield from _name(node.func.value, own)  # ``grads.append(grad)``


def _name(node: ast.expr, own: set[str]) -> Iterator[str]:
    """The last name of a path, if it does not begin with a variable of the hook's own."""
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    first: ast.expr = node
    while isinstance(first, (ast.Attribute, ast.Subscript)):
        first = first.value
    if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(first, ast.Name) and first.id not in own:
        name = syntax.last_name(ast.unparse(node))
        if name not in _OWNERS:
            yield name


def _functions(run: CellRun, name: str) -> list[ast.FunctionDef]:
    return [one for one in syntax.nodes_of(run.source) if isinstance(one, ast.FunctionDef) and one.name == name]


def reads(record: Record, run: CellRun, filled: tuple[str, ...]) -> bool:
    """Whether a line that was running when a run of a cell raised reads what a hook fills.

    Also by another name: a variable that was made of it before, or a function of the program's own that returns it.
    """
    wanted, cells = set(filled), Cells.of(record)
    for sight in run.scene.sights:
        spot = at(sight.place)
        statement = cells.statement(spot) if spot is not None else None
        if spot is None or statement is None:
            continue
        heads = [*syntax.head_of(statement)] if hasattr(statement, "body") else [statement]
        if any(wanted & _words(cells, spot, one) for one in heads):
            return True
    return False


def _words(cells: Cells, spot: tuple[int, int], statement: ast.stmt) -> set[str]:
    """The words of a statement, and of what its variables were made of and its functions return."""
    text = cells.text(spot[0])
    function = syntax.function_at(text, spot[1])
    trees = [syntax.parse(text)] if spot[0] in cells.files else [syntax.parse(run.source) for run in cells.latest]
    body = (
        function[1].body if function is not None else [one for tree in trees if tree is not None for one in tree.body]
    )
    made = [one for one in syntax.own_statements(body) if isinstance(one, ast.Assign)]
    found, new = set[str](), list[ast.AST]([statement])
    for _ in range(_HOPS):
        found |= {word for node in new for word in syntax.words_in(node)}
        read = {name for node in new for name in syntax.names_in(node)}
        called = {syntax.last_name(name) for node in new for name in syntax.calls_in(node)}
        functions = [one for run in cells.latest for name in called for one in _functions(run, name)]
        returned = [one for each in functions for one in ast.walk(each) if isinstance(one, ast.Return)]
        new = [*(one.value for one in made if read & set(syntax.targets(one))), *returned]
    return found
