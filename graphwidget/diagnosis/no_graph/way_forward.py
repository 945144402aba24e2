"""Where a value computed from a parameter leaves the graph, followed forwards from the lines that use the parameter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.cutting import cuts_in, outside_of_cuts
from graphwidget.diagnosis.source import grad_modes
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.model import CellRun, Record

__all__ = ["CutOff", "cuts_behind"]

MOST_STEPS = 200  # functions visited for one parameter

_OF_INDICES = ("argmax", "argmin", "argsort", "indices", "long", "int", "bool", "multinomial", "sample")


class CutOff(NamedTuple):
    """A line that cuts off values computed from a parameter. `by` as in `Cut`; `around`: a block without grad mode."""

    run: CellRun
    statement: ast.stmt
    by: str
    around: ast.stmt | None

    @property
    def only_indices(self) -> bool:
        """Whether it computes indices, which have no derivative by nature."""
        return self.by in _OF_INDICES


class _Use(NamedTuple):
    """The body of a function, or a cell, and its names for values computed from the parameter."""

    run: CellRun
    within: ast.ClassDef | None
    function: ast.FunctionDef | None
    names: frozenset[str]


def cuts_behind(record: Record, path: str) -> list[CutOff]:
    """Return the cuts between a parameter and all uses of its values; plain ones first.

    The parameter is followed from the class or cell that makes it, through local names and methods of that class.
    """
    found: dict[tuple[int, int], CutOff] = {}
    queue, seen = list(_first_uses(record, path)), set[tuple[int, str, frozenset[str]]]()
    while queue and len(seen) < MOST_STEPS:
        use = queue.pop(0)
        key = (use.run.run, use.function.name if use.function is not None else "", use.names)
        if key in seen:
            continue
        seen.add(key)
        returned = False
        for one, cut in _follow(use):
            if cut is not None:
                found.setdefault((use.run.run, one.lineno), cut)
            else:
                returned = True
        if returned and use.within is not None and use.function is not None:
            called = frozenset({f"self.{use.function.name}()"})
            queue += [_Use(use.run, use.within, other, called) for other in _methods(use.within)]
    return sorted(found.values(), key=lambda cut: (cut.only_indices, cut.statement.lineno))


def _first_uses(record: Record, path: str) -> Iterator[_Use]:
    """The code that reads a parameter under a name of its own: methods of the class that makes it, else the cells."""
    first, *parts = re.findall(r"[A-Za-z_]\w*", path)
    latest = Cells.of(record).latest
    for part in reversed(parts):
        made = [(run, cls) for run in latest for cls in _classes(run) if _makes(cls, f"self.{part}")]
        if len(made) == 1:
            run, cls = made[0]
            yield from (_Use(run, cls, method, frozenset({f"self.{part}"})) for method in _methods(cls))
            return
        if made:
            return
    for run in latest:
        yield _Use(run, None, None, frozenset({first}))
        tree = source.parse(run.source)
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)] if tree is not None else []
        yield from (_Use(run, None, function, frozenset({first})) for function in functions)


def _classes(run: CellRun) -> list[ast.ClassDef]:
    tree = source.parse(run.source)
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)] if tree is not None else []


def _methods(cls: ast.ClassDef) -> list[ast.FunctionDef]:
    return [one for one in cls.body if isinstance(one, ast.FunctionDef) and one.name != "__init__"]


def _makes(cls: ast.ClassDef, target: str) -> bool:
    statements = (node for node in ast.walk(cls) if isinstance(node, ast.stmt))
    return any(target in source.targets(one) for one in statements if isinstance(one, (ast.Assign, ast.AnnAssign)))


def _follow(use: _Use) -> Iterator[tuple[ast.stmt, CutOff | None]]:
    """The statements that cut off values from some names, and those that return such a value uncut."""
    tree = source.parse(use.run.source)
    body = use.function.body if use.function is not None else tree.body if tree is not None else []
    names = set(use.names)
    statements = [one for one in source.own_statements(body) if not isinstance(one, (ast.FunctionDef, ast.ClassDef))]
    for one in sorted(statements, key=lambda one: (one.lineno, one.col_offset)):
        value = _evaluated(one)
        if value is None:
            continue
        parts = [part for _, inner in cuts_in(value) for part in inner]
        cuts = [by for by, inner in cuts_in(value) if any(_reads(part, names) for part in inner)]
        flows = _flows(value, names)
        switch = grad_modes.around(use.run.source, one) if (flows or cuts) else None
        if switch is not None:
            if switch.off and flows and not _is_update(one):
                yield one, CutOff(use.run, one, switch.text, switch.outer)
            continue
        if cuts and not _only_shown(one):
            yield one, CutOff(use.run, one, cuts[0], None)
        assigned = set(source.targets(one)) if isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else set()
        if flows:
            names |= assigned
            if isinstance(one, ast.Return):
                yield one, None
        elif isinstance(one, ast.Assign) and not parts:
            names -= {name for name in assigned if name not in use.names}


def _evaluated(statement: ast.stmt) -> ast.AST | None:
    """The expression that a statement computes; for a block, that of its head."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return statement.iter
    if hasattr(statement, "body") or isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Global)):
        return None
    return source.given(statement)


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(_spelled(one) in names or _called(one) in names for one in ast.walk(node))


def _flows(value: ast.AST, names: set[str]) -> bool:
    """Whether the graph of a value leads back to one of some names."""
    return any(_spelled(one) in names or _called(one) in names for one in outside_of_cuts(value))


def _spelled(node: ast.AST) -> str:
    plain = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    return ast.unparse(node) if plain else ""


def _called(node: ast.AST) -> str:
    """``self.rotation()`` for a call of the method, with any arguments."""
    return f"{ast.unparse(node.func)}()" if isinstance(node, ast.Call) else ""


def _is_update(statement: ast.stmt) -> bool:
    """Whether a statement without grad mode only changes something in place or shows it: it computes no other value."""
    return isinstance(statement, (ast.AugAssign, ast.Expr))


def _only_shown(statement: ast.stmt) -> bool:
    """``print(loss.item())``, ``losses.append(w.item())``: the value is shown or stored, and not used for a loss."""
    return isinstance(statement, ast.Expr)
