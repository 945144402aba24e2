"""The order in which statements run, through the functions that they call."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.source import syntax

__all__ = ["in_running_order"]

_DEPTH = 4  # nested function calls that are followed


def in_running_order(texts: Collection[str], body: Collection[ast.stmt], depth: int = _DEPTH) -> Iterator[ast.stmt]:
    """The simple statements that some statements run, as `steps_of` has them; those of a called function come first.

    Parameters
    ----------
    texts
        The texts of all cells: a function is known by its name alone.
    """
    for statement in body:
        for step in syntax.steps_of(statement):
            for called in syntax.calls_in(step) if depth else ():
                for text in texts:
                    for function in syntax.functions_of(text, called.rsplit(".", 1)[-1]):
                        yield from in_running_order(texts, function.body, depth - 1)
            yield step
