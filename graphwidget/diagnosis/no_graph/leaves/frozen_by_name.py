"""Parameters that a loop is to leave trainable by their names, where no parameter of the model has such a name.

``if name not in ("fc.weight", "fc.bias"): p.requires_grad = False`` freezes all of a model whose head is called `head`.
The names are those that were measured when the backward raised; the test is worked out for each of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.diagnosis.wording import names as quoted
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.model import CellRun, Fix

__all__ = ["frozen_by_name"]

_METHODS = ("startswith", "endswith", "lower")


class _Unknown(Exception):
    """The text does not say what an expression is."""


class _Rule(NamedTuple):
    """A test of the names of parameters; `frozen`: whether those for which it is true are frozen."""

    test: ast.expr
    variable: str
    frozen: bool

    def freezes(self, name: str, other: Mapping[str, str] | None = None) -> bool:
        """Whether it freezes a parameter of that name. `other`: texts in the place of those that it compares with."""
        return bool(_value(self.test, {self.variable: name}, other or {})) == self.frozen

    @property
    def texts(self) -> list[tuple[ast.Constant, str]]:
        """The texts that it compares with, as nodes and as what they are."""
        nodes = (one for one in ast.walk(self.test) if isinstance(one, ast.Constant))
        return [(one, one.value) for one in nodes if isinstance(one.value, str)]


def frozen_by_name(frozen: Mapping[str, Sequence[str]], run: CellRun, freezing: ast.stmt) -> Cause | None:
    """The cause and the edit; None: the line has no such test, or it leaves a parameter of these modules trainable.

    Parameters
    ----------
    frozen
        Path of a module -> the names of its parameters, none of which requires grad, as `named_parameters` gives them.
    run, freezing
        The line that freezes them.
    """
    rule = _rule(run.source, freezing)
    for path, names in frozen.items() if rule is not None and rule.texts else ():
        head = names[-1].rpartition(".")[0]
        found = _renamed(rule, names, head) if rule is not None and head else None
        if rule is not None and found is not None:
            return _cause(run, freezing, rule, path, names, head, found)
    return None


def _cause(
    run: CellRun,
    freezing: ast.stmt,
    rule: _Rule,
    path: str,
    names: Sequence[str],
    head: str,
    renamed: dict[str, str],
) -> Cause:
    place, tested = place_of(run, freezing.lineno), place_of(run, rule.test.lineno)
    own = tuple(name for name in names if name.startswith(f"{head}."))
    text = (
        f"{short(ast.unparse(freezing))} ({where(place)}) freezes all of `{path}`: {short(ast.unparse(rule.test))} "
        f"({where(tested)}) is to leave some out by name, and no parameter has such a name. Its last parameters are "
        f"{quoted(own)}."
    )
    edits = tuple(
        edit
        for node, old in rule.texts
        for edit in text_edit.replace_node(run.cell, run.source, node, f'"{renamed[old]}"')
    )
    shown = ", ".join(f"`{new}` for `{old}`" for old, new in renamed.items())
    advice = f"Let what should train require grad by the name that it has: write {shown} ({where(tested)})."
    return Cause(text, Fix("unfreeze", advice, False, line_of(tested), edits=edits), tested)


def _renamed(rule: _Rule, names: Sequence[str], head: str) -> dict[str, str] | None:
    """The texts of a rule that freezes all of these names, with those that leave out the last module alone."""
    ends = {name.rpartition(".")[2] for name in names if name.startswith(f"{head}.")}
    other: dict[str, str] = {}
    for _, text in rule.texts:
        last = text.rpartition(".")[2]
        other[text] = f"{head}.{last}" if last in ends else f"{head}." if not last else head
    try:
        if not all(rule.freezes(name) for name in names):
            return None
        left = {name for name in names if not rule.freezes(name, other)}
    except _Unknown:
        return None
    return other if left == {name for name in names if name.startswith(f"{head}.")} else None


def _rule(text: str, freezing: ast.stmt) -> _Rule | None:
    """The test by which a line in a loop over ``named_parameters()`` freezes a parameter, or does not."""
    around = source.statements_at(text, freezing.lineno)
    loop = next((one for one in reversed(around) if isinstance(one, ast.For)), None)
    if loop is None or not isinstance(loop.target, ast.Tuple) or "named_parameters" not in ast.unparse(loop.iter):
        return None
    variable = ast.unparse(loop.target.elts[0])
    value = freezing.value if isinstance(freezing, ast.Assign) else None
    if value is not None and not isinstance(value, ast.Constant):
        return _Rule(value, variable, False)  # ``p.requires_grad = "fc" in name``
    for one in around[around.index(loop) :]:
        if isinstance(one, ast.If) and variable in source.names_in(one.test):
            return _Rule(one.test, variable, any(freezing is node for each in one.body for node in ast.walk(each)))
    for one in loop.body[: next((i for i, each in enumerate(loop.body) if each is freezing), 0)]:
        if isinstance(one, ast.If) and isinstance(one.body[-1], ast.Continue) and variable in source.names_in(one.test):
            return _Rule(one.test, variable, False)
    return None


def _value(node: ast.expr, known: Mapping[str, Any], other: Mapping[str, str]) -> Any:
    """What an expression of texts is; nothing of the program runs. Raises `_Unknown`: it is of another form."""
    if isinstance(node, ast.Constant):
        return other.get(node.value, node.value) if isinstance(node.value, str) else node.value
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_value(one, known, other) for one in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand, known, other)
    if isinstance(node, ast.BoolOp):
        values = [_value(one, known, other) for one in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(_value(node.left, known, other), node.ops[0], _value(node.comparators[0], known, other))
    if isinstance(node, ast.Call):
        return _called(node, known, other)
    raise _Unknown


def _called(node: ast.Call, known: Mapping[str, Any], other: Mapping[str, str]) -> Any:
    """``name.startswith("fc")``, ``any(key in name for key in ("fc", "head"))``."""
    name = ast.unparse(node.func)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and not node.keywords:
        text, *given = [_value(one, known, other) for one in (node.func.value, *node.args)]
        if isinstance(text, str) and (node.func.attr == "lower") == (not given) and len(given) < 2:
            return getattr(text, node.func.attr)(*(tuple(one) if isinstance(one, list) else one for one in given))
    if name in ("any", "all") and len(node.args) == 1 and isinstance(node.args[0], (ast.GeneratorExp, ast.ListComp)):
        values = _each(node.args[0], known, other)
        return any(values) if name == "any" else all(values)
    raise _Unknown


def _each(node: ast.GeneratorExp | ast.ListComp, known: Mapping[str, Any], other: Mapping[str, str]) -> Iterator[Any]:
    loop = node.generators[0]
    values = _value(loop.iter, known, other)
    if len(node.generators) > 1 or loop.ifs or not isinstance(loop.target, ast.Name) or not isinstance(values, list):
        raise _Unknown
    for one in values:
        yield _value(node.elt, {**known, loop.target.id: one}, other)


def _compared(left: Any, op: ast.cmpop, right: Any) -> bool:
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, (str, list)) and isinstance(left, str):
        return (left in right) == isinstance(op, ast.In)
    if isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(left, str) and isinstance(right, str):
        return (left == right) == isinstance(op, ast.Eq)
    raise _Unknown
