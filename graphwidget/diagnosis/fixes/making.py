"""What running statements once more would do besides building a graph: new parameters, a state that begins anew.

Read from the text alone, for `rewriting`: in doubt a statement is not run again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.reuse.crossings import Crossings
from graphwidget.diagnosis.reuse.story import Meeting
from graphwidget.diagnosis.source import edits
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.torch_names import has_parameters, imported_from
from graphwidget.model import CellRun

_TAKING = ("pop", "popleft", "popitem", "remove", "clear")


class Once:
    """What is made once for a whole program: parameters, modules, optimizers.

    Parameters
    ----------
    texts
        The cells, which define classes of modules and import some by their names.
    """

    def __init__(self, texts: Collection[str]) -> None:
        trees = [tree for text in texts if (tree := source.parse(text)) is not None]
        nodes = [node for tree in trees for node in ast.walk(tree)]
        self.classes = {"Module", "Parameter", "Optimizer"}
        self.classes |= imported_from(trees, "torch.nn") | imported_from(trees, "torch.optim")
        defined = [node for node in nodes if isinstance(node, ast.ClassDef)]
        for _ in defined:  # a class may be derived from one that is defined later in the text
            self.classes |= {d.name for d in defined if any(self._is_class(ast.unparse(b)) for b in d.bases)}

    def makes(self, statement: ast.stmt) -> bool:
        """Whether a statement makes something that the program is to have once."""
        return any(self._made_by(node) for node in ast.walk(statement))

    def _made_by(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Store):
            return True
        if not isinstance(node, ast.Call):
            return False
        grad = (k.value for k in node.keywords if k.arg == "requires_grad")
        if any(not (isinstance(value, ast.Constant) and value.value is False) for value in grad):
            return True
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            return False
        called = ast.unparse(node.func)
        return called.endswith(".requires_grad_") or self._is_class(called)

    def _is_class(self, called: str) -> bool:
        """Whether a dotted name is that of a class of modules with parameters, or of optimizers."""
        whole, _, last = called.rpartition(".")
        if not has_parameters(last):
            return False
        known = whole.rsplit(".", 1)[-1] in ("nn", "optim", "modules", "parameter") and last[:1].isupper()
        return known or last in self.classes


def starts_over(made: Collection[ast.stmt], loop: ast.For | ast.While) -> bool:
    """Whether a loop carries something on that these statements would begin anew in each of its passes.

    A state that each pass updates, a list that grows, a queue from which each pass takes.
    """
    changed = {name for statement in made for name in source.changed(statement)}
    kept = source.carried(loop)
    return bool(changed & (kept | taken_from(loop)))


def taken_from(loop: ast.For | ast.While) -> set[str]:
    """Names of containers that a loop takes something out of."""
    calls = (n.func for n in ast.walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    holders = [func.value for func in calls if func.attr in _TAKING]
    holders += [n.value for n in ast.walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Del)]
    return {holder.id for holder in holders if isinstance(holder, ast.Name)}


Made = list[tuple[CellRun, ast.stmt]]


def reach(meeting: Meeting, made: Made, cell: str, line: int, loop: ast.For | ast.While | None) -> bool:
    """Whether what statements assign is read: by the next of them, by the code in front of which they are put, or by a
    function; and by the names that they assign. A tensor that was put into a container before, or that has got another
    name, is there as it was, however often its name is assigned.
    """
    after = [loop] if loop is not None else list(_behind(cell, line))
    functions = [_taken(node) for run in meeting.record.runs.values() for node in _functions(run.source)]
    statements = [statement for _, statement in made]
    for position, statement in enumerate(statements):
        new = _stored(statement)
        readers = [_loaded(reader) for reader in (*statements[position + 1 :], *after)] + functions
        if new and not any(new & loaded for loaded in readers):
            return False
    return not _kept_by_another_name(meeting, made)


def _kept_by_another_name(meeting: Meeting, made: Made) -> bool:
    """Whether a line reads what these make by a name that they do not assign."""
    assigned = {name for _, statement in made for name in _stored(statement)}
    lines = {(run.run, line) for run, s in made for line in range(s.lineno, (s.end_lineno or s.lineno) + 1)}

    graph = meeting.graph
    for one in Crossings(meeting, graph, meeting.reached).all:
        user, tensor = graph.place_of(one.user), graph.place_of(one.tensor)
        if one.tensor not in meeting.needed or user is None or tensor is None:
            continue
        spot = (tensor.run, tensor.outer_line)
        if spot not in lines or spot == (user.run, user.outer_line):
            continue
        if not any(assigned & _parts(name) for name in one.names):
            return True
    return False


def _parts(path: str) -> set[str]:
    """The variable and the attributes of a path."""
    first, *rest = re.findall(r"\.?\w+", re.sub(r"\[[^]]*\]", "", path)) or [path]
    return {first, *rest}


def _behind(cell: str, line: int) -> Iterator[ast.stmt]:
    """The innermost statement at a line, and all that follow in the cell."""
    tree = source.parse(cell)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.stmt) and node.lineno >= line:
            yield node


_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _functions(cell: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
    tree = source.parse(cell)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, _Function):
            yield node


def _taken(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """What a function reads of what is around it when it is called: not its arguments, nor their defaults."""
    body = function.body if isinstance(function.body, list) else [function.body]
    given = function.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    own = {one.arg for one in every if one is not None}
    return {name for part in body for name in _loaded(part)} - own


def _stored(statement: ast.stmt) -> set[str]:
    """Names that a statement assigns or fills, and attributes: ``.h``."""
    attributes = (n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return source.changed(statement) | {f".{node.attr}" for node in attributes}


def _loaded(node: ast.AST) -> set[str]:
    nodes = [n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)]
    return {n.id if isinstance(n, ast.Name) else f".{n.attr}" for n in nodes}


def on_head(block: ast.FunctionDef | ast.For | ast.While) -> bool:
    """Whether a body stands on the line of its head: no line can be put in front of it."""
    return block.body[0].lineno == block.lineno


def text_of(cell: str, statement: ast.stmt) -> list[str]:
    """The lines of a statement; where others stand on its line, the statement alone."""
    around = [s for s in source.beginning_at(cell, statement.lineno) if s.lineno == statement.lineno]
    if len(around) > 1 and statement in around:
        return ast.unparse(statement).splitlines()
    return edits.statement_text(cell, statement)
