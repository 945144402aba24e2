"""The names that an expression gives to the elements of what it goes over, in a comprehension or a mapped lambda."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["element_names", "is_element"]


def is_element(node: ast.AST) -> bool:
    """``pair[1]``: a subscript of a name by a constant."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant)


def element_names(value: ast.AST) -> Iterator[tuple[set[str], ast.expr, list[ast.expr]]]:
    """The names for elements of what an expression goes over, what that is, and the expressions that use them.

    Of a ``zip`` each part has names of its own: ``p`` in ``for g, p in zip(grads, params)``, and ``pair[1]`` in
    ``map(lambda pair: pair[1] - pair[0], zip(grads, params))``.
    """
    for node in ast.walk(value):
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            uses = [node.elt, *(one.iter for one in node.generators[1:])]
            for one in node.generators:
                yield from _parts(one.target, one.iter, uses)
        elif isinstance(node, ast.DictComp):
            uses = [node.key, node.value, *(one.iter for one in node.generators[1:])]
            for one in node.generators:
                yield from _parts(one.target, one.iter, uses)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "map" and node.args:
            function = node.args[0]
            if isinstance(function, ast.Lambda):
                arguments = [*function.args.posonlyargs, *function.args.args]
                for argument, over in zip(arguments, node.args[1:]):
                    yield from _parts(ast.Name(argument.arg, ast.Store()), over, [function.body])


def _parts(
    target: ast.expr, over: ast.expr, uses: list[ast.expr]
) -> Iterator[tuple[set[str], ast.expr, list[ast.expr]]]:
    zipped = over.args if isinstance(over, ast.Call) and ast.unparse(over.func) == "zip" else []
    if zipped and isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(zipped):
        for one, part in zip(target.elts, zipped):
            yield _names(one), part, uses
    elif zipped and isinstance(target, ast.Name) and _only_by_place(target.id, uses):
        for at, part in enumerate(zipped):
            yield {f"{target.id}[{at}]"}, part, uses
    else:
        yield _names(target), over, uses


def _names(target: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}


def _only_by_place(name: str, uses: list[ast.expr]) -> bool:
    """Whether some expressions read a name only as ``name[0]``, ``name[1]``."""
    nodes = [node for one in uses for node in ast.walk(one)]
    reads = sum(isinstance(one, ast.Name) and one.id == name for one in nodes)
    return reads == sum(is_element(one) and one.value.id == name for one in nodes)  # type: ignore[attr-defined]
