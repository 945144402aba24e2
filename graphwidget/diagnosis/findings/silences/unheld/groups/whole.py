"""Groups of an optimizer that together have all parameters of a module: sorted into them, and none left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.silences.unheld.groups.collected import filled
from graphwidget.diagnosis.source import syntax

__all__ = ["groups_given", "taken_whole"]

_ALL_OF = ("parameters", "named_parameters")
# A comparison -> the same or the opposite one that stands for both, and whether it is the same.
_PAIRS: dict[type[ast.cmpop], tuple[type[ast.cmpop], bool]] = {
    ast.LtE: (ast.Gt, False),
    ast.GtE: (ast.Lt, False),
    ast.NotEq: (ast.Eq, False),
    ast.NotIn: (ast.In, False),
    ast.IsNot: (ast.Is, False),
}


def taken_whole(text: str, statement: ast.stmt, given: ast.expr) -> list[ast.expr]:
    """The calls of `parameters()`, of one module, all of whose parameters are in the groups that an optimizer is given.

    Parameters
    ----------
    text
        The cell or file.
    statement
        The one that makes the optimizer.
    given
        What the optimizer is given there.

    Returns
    -------
    list of ast.expr
        That of the loop which fills the groups, or those of the comprehensions which are the groups. Empty: some
        parameters may be left out, or that is not known.
    """
    groups, own = groups_given(text, statement, given), _before(text, statement)
    values = [value for one in groups if (value := _parameters_of(one)) is not None]
    return _of_comprehensions([_value_of(own, one) for one in values]) or _of_loop(own, values)


def groups_given(text: str, statement: ast.stmt, given: ast.expr) -> list[ast.expr]:
    """The groups in the list that an optimizer is given; empty: it is given something else. Arguments as above."""
    groups = _value_of(_before(text, statement), given)
    found = groups.elts if isinstance(groups, (ast.List, ast.Tuple)) else []
    return found if all(_parameters_of(one) is not None for one in found) else []


def _before(text: str, statement: ast.stmt) -> list[ast.stmt]:
    """The statements of the same function, or outside of functions, that stand before one."""
    inside, tree = syntax.function_at(text, statement.lineno), syntax.parse(text)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    return [one for one in syntax.own_statements(body) if one.lineno < statement.lineno]


def _value_of(own: list[ast.stmt], node: ast.expr) -> ast.expr:
    """What a name was given by the one statement that assigns it; any other expression, and a name else, as it is."""
    made = [one for one in own if isinstance(node, ast.Name) and node.id in syntax.targets(one)]
    value = made[0].value if len(made) == 1 and isinstance(made[0], (ast.Assign, ast.AnnAssign)) else None
    return value if value is not None and not isinstance(value, ast.Tuple) else node


def _parameters_of(group: ast.expr) -> ast.expr | None:
    """``decay`` of ``{"params": decay, "weight_decay": 0.1}`` and of ``dict(params=decay)``."""
    if isinstance(group, ast.Dict):
        pairs = zip(group.keys, group.values)
        return next((value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "params"), None)
    made = isinstance(group, ast.Call) and ast.unparse(group.func) == "dict"
    return next((one.value for one in group.keywords if one.arg == "params"), None) if made else None  # type: ignore[attr-defined]


def _is_of_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ALL_OF


def _of_comprehensions(values: list[ast.expr]) -> list[ast.expr]:
    """Two comprehensions over the same parameters, with opposite tests."""
    parts = [one.generators[0] for one in values if isinstance(one, (ast.ListComp, ast.GeneratorExp))]
    if len(values) != 2 or len(parts) != 2 or any(len(one.generators) > 1 for one in values):  # type: ignore[attr-defined]
        return []
    one, other = parts
    alike = ast.unparse(one.iter) == ast.unparse(other.iter) and ast.unparse(one.target) == ast.unparse(other.target)
    tests = [[test for test in part.ifs if not _asks_for_grad(test)] for part in parts]
    if not alike or not _is_of_module(one.iter) or [len(each) for each in tests] != [1, 1]:
        return []
    (text, holds), (other_text, other_holds) = (_test(each[0]) for each in tests)
    return [one.iter, other.iter] if text == other_text and holds is not other_holds else []


def _test(node: ast.expr) -> tuple[str, bool]:
    """A test, or the opposite one that stands for both, and whether it is the first."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        text, holds = _test(node.operand)
        return text, not holds
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        kind, same = _PAIRS.get(type(node.ops[0]), (type(node.ops[0]), True))
        return ast.unparse(ast.Compare(node.left, [kind()], node.comparators)), same
    return ast.unparse(node), True


def _asks_for_grad(test: ast.expr) -> bool:
    return isinstance(test, ast.Attribute) and test.attr == "requires_grad"


def _of_loop(own: list[ast.stmt], values: list[ast.expr]) -> list[ast.expr]:
    """The one loop that puts each parameter into one of these lists."""
    names = {one.id for one in values if isinstance(one, ast.Name)}
    loops = [one for one in own if isinstance(one, ast.For) and names & set(_filled(one.body))]
    if len(names) < len(values) or len(loops) != 1 or not _is_of_module(loops[0].iter):
        return []
    return [loops[0].iter] if _always_fills(loops[0].body, names) else []


def _filled(body: list[ast.stmt]) -> Iterator[str]:
    """The names of the containers that statements fill, also in blocks."""
    for one in syntax.own_statements(body):
        yield from _containers(one)


def _containers(statement: ast.stmt) -> list[str]:
    """The containers of which a statement fills one: two of ``(decay if p.ndim > 1 else rest).append(p)``."""
    into = filled(statement)
    value = statement.value.func.value if into and isinstance(statement, ast.Expr) else None  # type: ignore[attr-defined]
    if isinstance(value, ast.IfExp):
        return [ast.unparse(value.body), ast.unparse(value.orelse)]
    return [into[0]] if into is not None else []


def _always_fills(body: list[ast.stmt], names: set[str]) -> bool:
    """Whether one of these containers gets something, whichever way the statements go: but for what is frozen."""
    for one in body:
        containers = _containers(one)
        if containers:
            return names.issuperset(containers)
        if not isinstance(one, ast.If):
            continue
        if _always_fills(one.body, names) and _always_fills(one.orelse, names):
            return True
        frozen = isinstance(one.test, ast.UnaryOp) and isinstance(one.test.op, ast.Not)
        if not (frozen and _asks_for_grad(one.test.operand) and not one.orelse):  # type: ignore[attr-defined]
            return False
    return False
