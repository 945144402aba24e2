"""A tensor that is a leaf although it should be computed: the line that made it anew from numbers.

Only what is handed on as it is counts, or as its sum or mean: a name, an element of a tuple, what a function returns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.cutting import is_library
from graphwidget.diagnosis.no_graph.measured import place_at, statement_of
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Place, Record

__all__ = ["FreshLeaf", "fresh_leaf", "measured_leaf"]

_MOST = 100  # expressions that are followed
_REDUCING = ("mean", "sum")  # the loss of a list of losses
_MAKERS = ("tensor", "as_tensor", "Parameter")


class FreshLeaf(NamedTuple):
    """What made a leaf, and its statement.

    `made`: the call, ``torch.tensor(total, requires_grad=True)``, or the statement ``loss.requires_grad = True``.
    """

    run: CellRun
    statement: ast.stmt
    made: ast.Call | ast.Assign

    @property
    def place(self) -> Place:
        """Where it was made."""
        return place_of(self.run, self.statement.lineno)

    @property
    def sentence(self) -> str:
        """What the line does."""
        line = f"{short(ast.unparse(self.made))} ({where(self.place)})"
        return f"{line} makes a new leaf: no graph leads from it to what its value was computed from."

    @property
    def without(self) -> text_edit.Edits:
        """The edits after which it is not made: its value is handed on as it is. Empty: it cannot be left out."""
        cell, text = self.run.cell, self.run.source
        if isinstance(self.made, ast.Assign):
            return text_edit.remove(cell, text, self.statement)
        asked = _is_asked(self.made)
        if not asked and len(self.made.args) != 1:
            return ()
        value = self.made.func.value if asked and isinstance(self.made.func, ast.Attribute) else self.made.args[0]
        alone = isinstance(self.statement, ast.Expr) and self.statement.value is self.made
        given = syntax.given(self.statement) is self.made
        if alone or (given and list(syntax.targets(self.statement)) == [ast.unparse(value)]):
            return text_edit.remove(cell, text, self.statement)
        new = ast.unparse(value) if given else syntax.in_brackets(value)
        return text_edit.replace_node(cell, text, self.made, new)


class _Asked(NamedTuple):
    """An expression at a line; `element`: which element of its value is meant, None: all of it."""

    node: ast.expr
    spot: Spot
    element: int | None


def fresh_leaf(values: Values, root: ast.expr, spot: Spot) -> FreshLeaf | None:
    """Return the one call that made the leaf which an expression has as its value; None if that is not clear."""
    found: dict[int, FreshLeaf] = {}
    queue, seen = [_Asked(root, spot, None)], set[tuple[int, int | None]]()
    for asked in queue:
        if len(seen) >= _MOST:
            return None
        if (id(asked.node), asked.element) in seen:
            continue
        seen.add((id(asked.node), asked.element))
        if isinstance(asked.node, ast.Call) and _asks_for_grad(asked.node):
            statement = values.statement_of(asked.spot, asked.node)
            if statement is None:
                return None
            found[id(asked.node)] = FreshLeaf(values.runs[asked.spot.at], statement, asked.node)
        else:
            queue += _handed_on(values, asked)
    return next(iter(found.values())) if len(found) == 1 else None


def measured_leaf(record: Record, call: BackwardCall) -> FreshLeaf | None:
    """Return what made the only leaf behind a backward's root, where a second run has measured its line."""
    made = [one for one in record.lineage.made if one.call == call.n] if record.lineage is not None else []
    found = statement_of(record, place_at(record, made[0].lines)) if made else None
    if found is None:
        return None
    if made[0].by == "requires_grad_" and isinstance(found[1], ast.Assign):
        flags = [one for one in found[1].targets if isinstance(one, ast.Attribute) and one.attr == "requires_grad"]
        if len(found[1].targets) == len(flags) == 1:
            return FreshLeaf(*found, found[1])
    nodes = [node for node in ast.walk(found[1]) if isinstance(node, ast.Call)]
    makers = [one for one in nodes if syntax.last_name(ast.unparse(one.func)) == made[0].by]
    return FreshLeaf(*found, makers[0]) if len(makers) == 1 else None


def _handed_on(values: Values, asked: _Asked) -> Iterator[_Asked]:
    """What has the same value as an expression, one step nearer to where it was made."""
    node, spot, element = asked
    if isinstance(node, (ast.Name, ast.Attribute)):
        yield from _assigned(values, ast.unparse(node), spot, element)
    elif isinstance(node, (ast.Tuple, ast.List)) and element is not None and element < len(node.elts):
        yield _Asked(node.elts[element], spot, None)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        yield _Asked(node.value, spot, node.slice.value)
    elif isinstance(node, ast.IfExp):
        yield from (_Asked(one, spot, element) for one in (node.body, node.orelse))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REDUCING:
        yield _Asked(node.args[0] if is_library(node.func.value) and node.args else node.func.value, spot, None)
    elif isinstance(node, ast.Call):
        for at, made in _called(values, ast.unparse(node.func), spot):
            for one in values.returned(made):
                yield _Asked(one, Spot(at.at, one.lineno), element)


def _assigned(values: Values, name: str, spot: Spot, element: int | None) -> Iterator[_Asked]:
    for at, made in values.made(name, spot):
        if isinstance(made, ast.expr):
            yield _Asked(made, at, element)
        elif isinstance(made, ast.Assign):
            value, part = syntax.given_to(made, name)
            yield _Asked(value, at, part if part is not None else element)


def _called(values: Values, name: str, spot: Spot) -> Iterator[tuple[Spot, ast.AST]]:
    """The functions that a call may run: by its name, or of the class of the object that is called."""
    for at, made in values.made(name, spot):
        if isinstance(made, (ast.FunctionDef, ast.ClassDef)):
            yield at, made
        elif isinstance(made, ast.Assign):
            value, part = syntax.given_to(made, name)
            if isinstance(value, ast.Call) and part is None:
                classes = values.made(ast.unparse(value.func).rsplit(".", 1)[-1], at)
                yield from ((where, one) for where, one in classes if isinstance(one, ast.ClassDef))


def _is_asked(call: ast.Call) -> bool:
    return syntax.last_name(ast.unparse(call.func)) == "requires_grad_"


def _asks_for_grad(call: ast.Call) -> bool:
    """``torch.tensor(x, requires_grad=True)``, ``nn.Parameter(x)``, ``x.requires_grad_()``."""
    name = syntax.last_name(ast.unparse(call.func))
    if _is_asked(call):
        return not call.args or ast.unparse(call.args[0]) == "True"
    given = [ast.unparse(k.value) for k in call.keywords if k.arg == "requires_grad"]
    return name in _MAKERS and given == (["True"] if given or name != "Parameter" else [])
