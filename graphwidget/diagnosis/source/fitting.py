"""Whether the edits of a fix can be made: they fit the text, the cells still parse, and names are known where read.

A simulation on the graph says that a fix would help. This module says that the program with the edits is still a
program: from its text alone, as strict as a run from top to bottom. A trial would meet an unknown name, too. But of
several cuts the first that works becomes the fix, and on the graph ``h = h.detach()`` works also where only a
generator, or a closure, has an `h`: the note would offer an edit that cannot run, and a trial would have no other.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.own_names import in_own_names
from graphwidget.model import Fix, Record, TextEdit

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def with_display(record: Record, fix: Fix) -> Fix:
    """The fix with its edits in the names of the program, and the lines that show them."""
    cells = Cells.of(record)
    if not fix.edits or applied(cells.texts, fix.edits) is None:
        return fix
    edits = in_own_names(cells.texts, cells.files, fix.edits)
    return replace(fix, edits=edits, edit=text_edit.shown_in(cells.texts, edits))


def checked(record: Record, fix: Fix) -> Fix:
    """The fix unchanged; or, if its edit cannot be made, without it and not verified."""
    if fix.by_hand or (fix.edit and fix.at is None):
        return fix
    cells = Cells.of(record)
    if fix.edits and fix.at is not None and possible(cells.texts, fix.edits, cells.files):
        return fix
    return replace(fix, verified=False, edit=(), edits=())


def made_once_run_often(record: Record, fix: Fix) -> bool:
    """Whether an edit gives a graph to a tensor made before a loop that runs backward: each pass would reuse it.

    Where there is no graph yet, nothing can be simulated: the first pass would run, and the second raise.
    """
    after = applied(Cells.of(record).texts, fix.edits) if fix.edits else None
    if after is None:
        return False
    for cell, line in after.written:
        made = {name for s in source.statements_at(after.texts[cell], line)[-1:] for name in _made(s)}
        for other, text in after.texts.items():
            for loop in ast.walk(source.parse(text) or ast.Module([], [])):
                if not isinstance(loop, source.LOOPS) or (other == cell and _holds(loop, line)):
                    continue
                used = source.names_in(loop) - (source.changed(loop) - source.carried(loop))
                if made & used and any(map(_runs_backward, ast.walk(loop))):
                    return True
    return False


def _made(statement: ast.stmt) -> set[str]:
    """What a statement assigns, or calls a method of: ``h`` in ``h.retain_grad()``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    return source.changed(statement) | (source.names_in(function) if function is not None else set())


def _holds(loop: ast.stmt, line: int) -> bool:
    return loop.lineno <= line <= (loop.end_lineno or 0)


def _runs_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.stmt) and source.backward_root(ast.unparse(node)) is not None


def possible(cells: dict[int, str], edits: Iterable[TextEdit], files: Collection[int] = ()) -> bool:
    """Whether edits can be applied, and leave texts that parse and know each name that they read.

    Parameters
    ----------
    files
        Those of the texts that are files: each has names of its own, and cells share theirs.
    """
    after = applied(cells, edits)
    if after is None or any(source.parse(text) is None for text in after.texts.values()):
        return False
    shared = [cell for cell in cells if cell not in files]
    return all(_knows_its_names(cells, after, some) for some in (shared, *([file] for file in files)))


def _knows_its_names(cells: dict[int, str], edited: Applied, numbers: Collection[int]) -> bool:
    """`possible` for texts that share their names, and have been edited."""
    written = [spot for spot in edited.written if spot[0] in numbers]
    before, after = ({n: texts[n] for n in texts if n in numbers} for texts in (cells, edited.texts))
    if before == after:
        return True
    foreign = _names(before, ast.Load) - _names(before, ast.Store)  # bound by no known text
    return all(name in foreign or _known(after, *spot, name) for spot in written for name in _names_read(after, *spot))


@dataclass
class Applied:
    """The texts of the cells with an edit in them, and the (cell, line)s that it wrote."""

    texts: dict[int, str]
    written: list[Spot] = field(default_factory=list)


def applied(cells: dict[int, str], edits: Iterable[TextEdit]) -> Applied | None:
    """The cells with edits in them. None: they overlap, or are of text that is not there."""
    edits = list(edits)
    try:
        texts = text_edit.apply_to(cells, edits)
    except ValueError:
        return None
    own = {cell: [edit for edit in edits if edit.cell == cell] for cell in cells}
    return Applied(texts, [(cell, line) for cell in cells for line in text_edit.written(cells[cell], own[cell])])


# ------------------------------------------------------------------ names


def _names(texts: dict[int, str], context: type[ast.expr_context]) -> set[str]:
    """Names that are read (`ast.Load`), or bound in any way (`ast.Store`), anywhere in the cells."""
    return set[str]().union(*(_names_in(text, context is ast.Store) for text in texts.values()))


@lru_cache(maxsize=1024)
def _names_in(text: str, bound: bool) -> frozenset[str]:
    nodes = source.nodes_of(text)
    if bound:
        return frozenset(name for node in nodes for name, _ in _bound_by(node)) | _argument_names(nodes)
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _argument_names(nodes: Iterable[ast.AST]) -> set[str]:
    functions = (node for node in nodes if isinstance(node, (*_Function, ast.Lambda)))
    return {argument.arg for function in functions for argument in _arguments(function)}


def _names_read(texts: dict[int, str], cell: int, line: int) -> set[str]:
    """Names that a line reads, without the variables of its own comprehensions, lambdas, and loops of one line."""
    found = source.statements_at(texts[cell], line)
    nodes = list(ast.walk(found[-1])) if found else []
    own = {name for node in nodes if isinstance(node, ast.comprehension) for name in source.names_in(node.target)}
    own |= _argument_names(nodes)
    own |= _loop_variables(texts[cell], line)
    names = (node for node in nodes if isinstance(node, ast.Name) and node.lineno == line)
    return {node.id for node in names if isinstance(node.ctx, ast.Load)} - own


def _loop_variables(text: str, line: int) -> set[str]:
    """The variables of the loops that begin on a line: it may be the whole loop."""
    loops = (s for s in source.statements_at(text, line) if isinstance(s, (ast.For, ast.AsyncFor)) and s.lineno == line)
    return {name for one in loops for name in source.names_in(one.target)}


def _known(texts: dict[int, str], cell: int, line: int, name: str) -> bool:
    """Whether a line may read a name: bound before it where it stands, or in the functions or cells around it."""
    around = [s for s in source.statements_at(texts[cell], line) if isinstance(s, _Function)]
    for depth, function in enumerate(reversed(around)):
        if any(argument.arg == name for argument in _arguments(function)):
            return True
        bound = [at for one, at in _bindings(function) if one == name]
        if bound:
            return depth > 0 or min(bound) < line
    for one, text in texts.items():
        tree = source.parse(text)
        bound = [at for found, at in _bindings(tree) if found == name] if tree else []
        if bound and (around or one != cell or min(bound) < line):
            return True
        if one == cell and not around:
            break
    return hasattr(builtins, name)


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[ast.arg]:
    given = function.args
    yield from (*given.posonlyargs, *given.args, *given.kwonlyargs)
    yield from (one for one in (given.vararg, given.kwarg) if one is not None)


def _bindings(scope: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that a scope itself binds, each with the line; what its functions declare global belongs to the module.

    What it declares nonlocal belongs to a function around it.
    """
    elsewhere = {name for node in ast.walk(scope) if isinstance(node, ast.Global) for name in node.names}
    module = isinstance(scope, ast.Module)
    if module:
        yield from ((name, 0) for name in elsewhere)
    own = list(_own_nodes(scope))
    elsewhere |= {name for node in own if isinstance(node, ast.Nonlocal) for name in node.names}
    for node in own:
        for name, line in _bound_by(node):
            if module or name not in elsewhere:
                yield name, line


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of functions and classes inside it."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_Function, ast.ClassDef, ast.Lambda, ast.comprehension)):
            waiting.extend(ast.iter_child_nodes(node))


def _bound_by(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, (*_Function, ast.ClassDef)):
        yield node.name, node.lineno
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name, node.lineno
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield (alias.asname or alias.name).split(".", 1)[0], node.lineno
