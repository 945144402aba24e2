"""An input that is a part of what the root was computed from: ``t = X[:, 1:2]``, where the network was given ``X``.

The part is a tensor of its own, which came after or beside the network. The gradient of the part is that part of the
gradient of the whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.refusals.unused_inputs.below import below
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import BackwardCall, Fix, Place, Record, TensorRef

__all__ = ["part_of_whole"]

_MOST_STEPS = 20  # from a part to the whole
_TAKING = ("unsqueeze", "squeeze", "view", "reshape", "flatten", "narrow", "select", "t", "transpose", "permute")


class _Part(NamedTuple):
    """A statement that gives a name a part of something, that part, and the whole."""

    statement: ast.stmt
    value: ast.expr
    whole: ast.expr


class _Asked(NamedTuple):
    """An expression whose value is the gradient of a single input, and that input."""

    gradient: ast.expr
    input: ast.expr


def part_of_whole(
    record: Record, call: BackwardCall, asked: TensorRef | None, name: str | None, root: str, shown: str
) -> tuple[str, Place, tuple[Fix, ...]] | None:
    """Why the root does not lead to an input, the line that took that, and the fix; None: it is no such part."""
    if name is None or asked is None or not _leads_to_the_whole(call, asked):
        return None
    cells, spot = Cells.of(record), at(call.place)
    if spot is None:
        return None
    text = cells.text(spot[0])
    part, asking = _part(text, spot[1], name), [*_asking(text, spot[1])]
    helper = syntax.function_at(text, spot[1]) if part is None else None
    caller = at(call.place.stack[-1]) if helper is not None and call.place.stack else None
    if helper is not None and caller is not None and _returns_a_gradient(cells.statement(spot)):
        spot, text = caller, cells.text(caller[0])
        asking = [*_asking_by(text, spot[1], helper[1], name)]
        found = ((one, _part(text, caller[1], one)) for one in _inputs_at(cells, caller, asking))
        name, part = next((pair for pair in found if pair[1] is not None), (name, None))
        shown = f"`{name}`"
    if part is None:
        return None
    whole = ast.unparse(part.whole)
    run = next(one for one in cells.latest if one.cell == spot[0])
    place = place_of(run, part.statement.lineno)
    line = f"{short(ast.unparse(part.statement))} ({where(place)})"
    said = (
        f"{line} takes {shown} out of `{whole}`: it is a tensor of its own. `{root}` was computed from `{whole}`, so a "
        f"path leads from `{root}` to `{whole}`, and none to {shown}."
    )
    advice = (
        f"Ask for the gradient of `{whole}`, and take the same part of it. Or compute `{root}` from {shown}: take the "
        f"parts first, and give it what `torch.cat` joins of them."
    )
    edits = tuple(edit for one in asking for edit in _of_the_whole(spot[0], text, one, whole))
    return said, place, (Fix("differentiate_the_whole", advice, False, spot, edits=edits),)


def _leads_to_the_whole(call: BackwardCall, asked: TensorRef) -> bool:
    """Whether an input was computed, step by step, from a single tensor that the roots lead to."""
    graph, node = call.graph, asked.node
    if graph is None or asked.is_leaf or node < 0:
        return False
    reached = below(graph, call)
    for _ in range(_MOST_STEPS):
        following = graph.next(node)
        if len(following) != 1:
            return False
        node = following[0]
        if node in reached:
            return True
    return False


def _part(text: str, line: int, name: str) -> _Part | None:
    """The last statement before a line, in its function, that gives a name a part of something."""
    inside = syntax.function_at(text, line)
    made = [
        one
        for one in syntax.assignments(text, name)
        if isinstance(one, ast.Assign) and one.lineno < line and syntax.function_at(text, one.lineno) == inside
    ]
    value, element = syntax.given_to(made[-1], name) if made and isinstance(made[-1], ast.Assign) else (None, None)
    if value is None or element is not None:
        return None
    whole = value
    while (inner := _taken_from(whole)) is not None:
        whole = inner
    return (
        _Part(made[-1], value, whole) if whole is not value and isinstance(whole, (ast.Name, ast.Attribute)) else None
    )


def _taken_from(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Subscript):
        return node.value
    called = node.func if isinstance(node, ast.Call) else None
    return called.value if isinstance(called, ast.Attribute) and called.attr in _TAKING else None


def _inputs_at(cells: Cells, spot: Spot, asking: list[_Asked]) -> Iterator[str]:
    """The variables whose gradients a statement asks for, in the order in which it does."""
    statement = cells.statement(spot)
    inside = {id(node) for node in ast.walk(statement)} if statement is not None else set()
    for one in sorted(asking, key=lambda one: (one.gradient.end_lineno or 0, one.gradient.end_col_offset or 0)):
        if id(one.gradient) in inside and isinstance(one.input, ast.Name):
            yield one.input.id


def _around(text: str, line: int) -> Iterator[ast.AST]:
    """The nodes of the function of a line, or of the code around all functions."""
    inside, tree = syntax.function_at(text, line), syntax.parse(text)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    return (node for statement in body for node in ast.walk(statement))


def _asking(text: str, line: int) -> Iterator[_Asked]:
    """``torch.autograd.grad(u, t)[0]`` in the function of a line."""
    return (asked for node in _around(text, line) if (asked := _asked(node)) is not None)


def _asked(node: ast.AST) -> _Asked | None:
    call = node.value if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "0" else None
    if not isinstance(node, ast.Subscript) or not isinstance(call, ast.Call):
        return None
    name = ast.unparse(call.func)
    given = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "inputs")]
    asks = name.endswith("autograd.grad") or name == "grad"
    return _Asked(node, given[0]) if asks and len(given) == 1 else None


def _returns_a_gradient(statement: ast.stmt | None) -> bool:
    """``return torch.autograd.grad(f, v)[0]``: what its function gives back is the gradient and nothing else."""
    return isinstance(statement, ast.Return) and statement.value is not None and _asked(statement.value) is not None


def _asking_by(text: str, line: int, helper: ast.FunctionDef, parameter: str) -> Iterator[_Asked]:
    """``derivative(u, t)`` in the function of a line, for a `parameter` of a function that returns a gradient."""
    names = [one.arg for one in (*helper.args.posonlyargs, *helper.args.args)]
    at_position = names.index(parameter) - (names[0] in ("self", "cls")) if parameter in names else None
    for node in _around(text, line):
        if not isinstance(node, ast.Call) or syntax.last_name(ast.unparse(node.func)) != helper.name:
            continue
        given = [one.value for one in node.keywords if one.arg == parameter]
        given += node.args[at_position:][:1] if at_position is not None else []
        if len(given) == 1:
            yield _Asked(node, given[0])


def _of_the_whole(cell: int, text: str, asked: _Asked, whole: str) -> text_edit.Edits:
    """The part of the gradient of the whole, where a call asks for the gradient of a part of it."""
    part = _part(text, asked.gradient.lineno, asked.input.id) if isinstance(asked.input, ast.Name) else None
    if part is None or ast.unparse(part.whole) != whole:
        return ()
    behind = ast.unparse(part.value).removeprefix(whole)
    return (
        *text_edit.replace_node(cell, text, asked.input, whole),
        *text_edit.insert_behind(cell, text, asked.gradient, behind),
    )
