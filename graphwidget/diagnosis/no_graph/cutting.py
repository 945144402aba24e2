"""Expressions that cut the graph: ``y.detach()``, ``torch.tensor(losses)``, the indices of ``torch.max(y, 1)``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

# Functions of tensors that have no derivative: they count, compare, or name positions. A test asks torch about each.
NOT_DIFFERENTIABLE = (
    *("argmax", "argmin", "argsort", "argwhere", "nonzero", "count_nonzero", "bincount", "histc"),
    *("bucketize", "searchsorted", "isin", "one_hot", "multinomial", "sample", "long", "int", "short", "byte", "bool"),
    *("eq", "ne", "lt", "le", "gt", "ge", "equal", "isclose", "isnan", "isinf", "isfinite", "signbit"),
    *("greater", "greater_equal", "less", "less_equal", "not_equal"),
    *("logical_and", "logical_or", "logical_not", "logical_xor"),
)

# Calls whose result has no graph although their argument has one.
CUTTING = {
    "detach": "detach",
    "detach_": "detach",
    "data": "detach",
    "item": "no_grad_or_item",
    "numpy": "differentiable_op",
    "tolist": "differentiable_op",
    "tensor": "differentiable_op",
    **dict.fromkeys(NOT_DIFFERENTIABLE, "differentiable_op"),
}

LIBRARIES = {"torch", "F", "functional"}

PLAIN = {"np", "numpy", "math", "random"}


def any_of(answers: Iterable[bool | None]) -> bool | None:
    """True if one answer is true, else None if one is unknown, else False."""
    found = list(answers)
    return True if True in found else None if None in found else False


def what_is_cut(node: ast.AST) -> tuple[str, list[ast.expr]] | None:
    """How a node cuts the graph, and of what: ``y`` in ``y.detach()``, ``losses`` in ``torch.tensor(losses)``."""
    if isinstance(node, ast.Attribute) and node.attr == "data" and not is_library(node.value):  # `torch.utils.data`
        return "data", [node.value]
    if not isinstance(node, ast.Call):
        return None
    last = ast.unparse(node.func).rsplit(".", 1)[-1]
    if last not in CUTTING or last == "data":
        return None
    base = [node.func.value] if isinstance(node.func, ast.Attribute) and not is_library(node.func.value) else []
    return last, [*base, *node.args]


def is_library(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in LIBRARIES | PLAIN | {"nn"}


def outside_of_cuts(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression through which it may have a graph: none inside a cut or a test."""
    if what_is_cut(node) is not None or isinstance(node, (ast.Compare, ast.Lambda)):
        return
    if index_of_a_pair(node):
        return
    yield node
    skipped = node.test if isinstance(node, ast.IfExp) else node.slice if isinstance(node, ast.Subscript) else None
    for child in ast.iter_child_nodes(node):
        if child is not skipped:
            yield from outside_of_cuts(child)


def index_of_a_pair(node: ast.AST) -> bool:
    """Whether a node takes the indices of ``torch.max(y, 1)`` or ``y.topk(3)``, which have no derivative."""
    if isinstance(node, ast.Attribute) and node.attr == "indices":
        return True
    second = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 1
    return second and isinstance(node, ast.Subscript) and _is_pair(node.value)


def _is_pair(node: ast.AST) -> bool:
    """Whether a node is a call that returns values and their indices."""
    if not isinstance(node, ast.Call):
        return False
    last = ast.unparse(node.func).rsplit(".", 1)[-1]
    given = len(node.args) - (isinstance(node.func, ast.Attribute) and is_library(node.func.value))
    dims = given > 0 or any(k.arg == "dim" for k in node.keywords)
    return last in ("topk", "sort", "kthvalue", "mode") or (last in ("max", "min", "median") and dims)


def is_gradient_without_graph(node: ast.AST) -> bool:
    """Whether a node is a call of ``autograd.grad`` that asks for no graph of the gradient."""
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("autograd.grad"):
        return False
    asked = [one for one in node.keywords if one.arg in ("create_graph", None)]
    return len(node.args) < 5 and all(isinstance(one.value, ast.Constant) and not one.value.value for one in asked)


def indices_only(statement: ast.stmt, name: str) -> bool:
    """Whether a name gets the indices of what the statement computes: ``_, pred = torch.max(net(x), 1)``."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        return False
    parts = [ast.unparse(part) for part in statement.targets[0].elts]
    return len(parts) == 2 and parts[1] == name and _is_pair(statement.value)


def is_scored(names: Iterable[str], statements: Iterable[ast.stmt]) -> bool:
    """Whether a sample of one of these names is given to `log_prob`: the gradient goes by way of that, and is right."""
    wanted = set(names)
    calls = (node for one in statements for node in ast.walk(one) if isinstance(node, ast.Call))
    scores = (one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "log_prob")
    return any(
        isinstance(node, ast.Name) and node.id in wanted
        for one in scores
        for given in one.args
        for node in ast.walk(given)
    )


def cuts_in(node: ast.AST) -> Iterator[tuple[str, list[ast.expr]]]:
    """The cuts in an expression, the outermost first."""
    for one in ast.walk(node):
        found = what_is_cut(one)
        if found is not None:
            yield found
        elif index_of_a_pair(one) and isinstance(one, (ast.Subscript, ast.Attribute)):
            yield "indices", [one.value]
