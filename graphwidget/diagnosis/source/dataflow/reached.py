"""The functions of a program that some code may call, as far as names show."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from graphwidget.diagnosis.source import syntax
from graphwidget.model import CellRun

__all__ = ["CALLED_OF_OBJECTS", "reached"]

CALLED_OF_OBJECTS = ("__init__", "__enter__", "__exit__", "__call__", "forward")
MOST_REACHED = 500  # functions


def reached(
    runs: Sequence[CellRun], words: Collection[str], methods: Collection[str] = CALLED_OF_OBJECTS
) -> Iterator[tuple[CellRun, ast.FunctionDef]]:
    """Yield the functions that code with these words names, then those that these name, and so on; each once.

    Parameters
    ----------
    runs
        The program; what stands in the first is yielded first.
    words
        Names, and names of attributes.
    methods
        Which methods count of a class that is named, or an object of which a variable or attribute so named holds.
    """
    seen, new, left = set[int](), set(words), MOST_REACHED
    while new and left > 0:
        named = new | {name for run in runs for word in sorted(new) for name in _made_for(run.source, word)}
        found = [
            (run, made)
            for run in runs
            for name in sorted(named)
            for made in _functions(run.source, name, methods)
            if id(made) not in seen
        ][:left]
        yield from found
        seen |= {id(made) for _, made in found}
        left -= len(found)
        new = {word for _, made in found for word in syntax.words_in(made)}


def _made_for(text: str, word: str) -> Iterator[str]:
    """What is called to make what a text assigns to a name: `Router` for ``self.router = Router(4)``."""
    for statement, _ in syntax.assigned_as(text, word):
        value = getattr(statement, "value", None)
        yield from map(syntax.last_name, syntax.calls_in(value) if value is not None else ())


def _functions(text: str, name: str, methods: Collection[str]) -> Iterator[ast.FunctionDef]:
    for made in syntax.defined(text, name):
        inside = made.body if isinstance(made, ast.ClassDef) else [made]
        for one in inside:
            if isinstance(one, ast.FunctionDef) and (one is made or one.name in methods):
                yield one
