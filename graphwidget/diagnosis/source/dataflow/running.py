"""The order in which statements run, through the functions that they call."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.source import syntax

__all__ = ["in_running_order"]

_DEPTH = 4  # nested function calls that are followed


def in_running_order(
    texts: Collection[str], body: Collection[ast.stmt], depth: int = _DEPTH, around: Collection[str] = ()
) -> Iterator[ast.stmt]:
    """The simple statements that some statements run, as `steps_of` has them; those of a called function come first.

    Parameters
    ----------
    texts
        The texts of all cells: a function is known by its name alone.
    around
        The names of functions that are running around the statements. A call of such a name is of another method:
        ``model.train()`` in a step of the program's own `train`.
    """
    for statement in body:
        for step in syntax.steps_of(statement):
            called = (syntax.last_name(one) for one in syntax.calls_in(step)) if depth else ()
            for name in (one for one in called if one not in around):
                for text in texts:
                    for function in syntax.functions_of(text, name):
                        yield from in_running_order(texts, function.body, depth - 1, around)
            yield step
