"""What is computed from a gradient alone: ``((g.norm(dim=1) - 1) ** 2).mean()``, also through functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graphwidget.diagnosis.no_graph.gradients.read_grads import is_read
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import BackwardCall

__all__ = ["Parts", "parts"]

_MOST = 200  # expressions that are followed
_CUTTING = ("detach", "detach_", "data", "item")

Line = tuple[int | None, int | None]


@dataclass
class Parts:
    """What an expression is computed from.

    `gradients` are the calls that made gradients, `read` the `.grad`s that it reads, each with its line. `other`: there
    is, or may be, something else that is no plain number.
    """

    gradients: list[BackwardCall] = field(default_factory=list)
    read: list[tuple[ast.Attribute, Spot]] = field(default_factory=list)
    other: bool = False
    cut: bool = False

    @property
    def only_gradients(self) -> bool:
        """Whether all of it came from gradients, and the program does not say that it is meant as a constant."""
        return bool(self.gradients or self.read) and not self.other and not self.cut


def parts(
    values: Values, root: ast.expr, spot: Spot, calls: Mapping[Line, BackwardCall], *, inside_a_cut: bool = False
) -> Parts:
    """Return what an expression at a line is computed from.

    Parameters
    ----------
    calls
        Those of ``autograd.grad``, by their line.
    inside_a_cut
        Go on behind what cuts the graph.
    """
    found, queue, seen = Parts(), [(root, spot)], set[int]()
    for node, at in queue:
        if id(node) in seen:
            continue
        seen.add(id(node))
        if len(seen) > _MOST or not 0 <= at.at < len(values.runs):
            found.other = True
            break
        if isinstance(node, ast.Call) and source.last_name(ast.unparse(node.func)) == "grad":
            call = calls.get((values.runs[at.at].cell, node.lineno))
            found.other |= call is None
            if call is not None and call not in found.gradients:
                found.gradients.append(call)
            continue
        if isinstance(node, ast.Attribute) and is_read(node):
            found.read.append((node, at))
            continue
        outermost = node.func if isinstance(node, ast.Call) else node
        if (isinstance(outermost, ast.Attribute) and outermost.attr in _CUTTING) or _is_switched(values, node, at):
            found.cut |= inside_a_cut or not _has_no_graph(parts(values, node, at, calls, inside_a_cut=True))
            if not inside_a_cut:
                continue
        queue += _below(values, node, at, found)
    return found


def _has_no_graph(cut: Parts) -> bool:
    """Whether what is cut off is computed from gradients without a graph: ``norms.mean()``, under `no_grad`."""
    return bool(cut.gradients) and not any(one.create_graph for one in cut.gradients)


def _is_switched(values: Values, node: ast.expr, spot: Spot) -> bool:
    """Whether an expression stands where the program has switched grad mode off."""
    statements = source.statements_at(values.runs[spot.at].source, getattr(node, "lineno", 0))
    return bool(statements) and values.switch_around(spot.at, statements[-1]) is not None


def _below(values: Values, node: ast.expr, spot: Spot, found: Parts) -> Iterator[tuple[ast.expr, Spot]]:
    """What an expression is made of, one step nearer to the start."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        made = values.made(ast.unparse(node), spot)
        if not made and isinstance(node, ast.Attribute):
            yield node.value, spot
        elif not made:
            found.other |= not (_is_library(node) or _has_default(values, ast.unparse(node), spot))
        for at, one in made:
            if isinstance(one, ast.expr):
                yield one, at
            elif isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and one.value is not None:
                yield one.value, at
                if isinstance(one, ast.AugAssign):  # and what it was before
                    yield one.target, Spot(at.at, one.lineno)
            elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):  # ``norms.append(g.norm())``
                yield from ((given, at) for given in one.value.args)
            else:
                found.other = True  # a loop's variable, a class, a function that is handed on
    elif isinstance(node, ast.Call):
        yield from _of_call(values, node, spot, found)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        yield node.elt, spot
        found.other |= len(node.generators) > 1 or _is_read_plainly(node.elt, source.bound(node.generators[0].target))
    elif isinstance(node, (ast.Lambda, ast.SetComp, ast.DictComp)):
        found.other = True
    else:
        yield from ((one, spot) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))


def _is_read_plainly(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression reads more of these names than their `.grad`, or a gradient that it asks for."""
    nodes = list(ast.walk(node))
    of_grads = {id(one.value) for one in nodes if isinstance(one, ast.Attribute) and is_read(one)}
    asking = (one for one in nodes if isinstance(one, ast.Call) and source.last_name(ast.unparse(one.func)) == "grad")
    of_grads |= {id(inner) for one in asking for inner in ast.walk(one)}
    return any(isinstance(one, ast.Name) and one.id in names and id(one) not in of_grads for one in nodes)


def _has_default(values: Values, name: str, spot: Spot) -> bool:
    """Whether a name is an argument that no call passes, and whose default is a plain value."""
    inside = source.function_at(values.runs[spot.at].source, spot.line)
    given = inside[1].args if inside is not None else None
    if given is None:
        return False
    places = [*given.posonlyargs, *given.args]
    defaults = dict(zip([one.arg for one in places[::-1]], given.defaults[::-1]))
    defaults |= {one.arg: default for one, default in zip(given.kwonlyargs, given.kw_defaults) if default is not None}
    return isinstance(defaults.get(name), (ast.Constant, ast.UnaryOp))


def _of_call(values: Values, node: ast.Call, spot: Spot, found: Parts) -> Iterator[tuple[ast.expr, Spot]]:
    """What the program's own function returns; of an operation of PyTorch, its arguments."""
    name = ast.unparse(node.func)
    made = [*values.made(name, spot), *((spot, one) for one in _own_method(values, name, spot))]
    functions = [(at, one) for at, one in made if isinstance(one, ast.FunctionDef)]
    classes = [
        (where, cls)
        for at, one in made
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        for where, cls in values.made(ast.unparse(one.value.func), at)
        if isinstance(cls, ast.ClassDef)
    ]
    if functions or classes:
        for at, one in (*functions, *classes):
            returned = values.returned(one)
            found.other |= not returned
            yield from ((value, Spot(at.at, value.lineno)) for value in returned)
        return
    if made:
        found.other = True  # an object that is called: a module
        return
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if inner is not None and not _is_library(inner):
        given.append(inner)
    yield from ((one.value if isinstance(one, ast.Starred) else one, spot) for one in given)


def _own_method(values: Values, name: str, spot: Spot) -> list[ast.FunctionDef]:
    """The method that ``self.penalty`` names in a class."""
    inside = source.function_at(values.runs[spot.at].source, spot.line)
    if inside is None or inside[0] is None or not name.startswith("self."):
        return []
    methods = [one for one in inside[0].body if isinstance(one, ast.FunctionDef)]
    return [one for one in methods if one.name == name.removeprefix("self.")]


def _is_library(node: ast.expr) -> bool:
    """Whether it is a module such as ``torch.linalg``; not what a function of one returns."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("torch", "math", "np", "nn", "F")
