"""Other names by which code speaks of a container: a property that returns it, an argument, a local name.

``self.epoch_outputs["loss"].append(x)``, where `epoch_outputs` returns `self._outputs`; ``add(self.records, x)``, where
`add` calls it `into`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax

__all__ = ["OtherName", "other_names"]

_MOST = 20  # names of one container: of more, they are too common to say anything


class OtherName(NamedTuple):
    """A name, behind which are the `keys` of the container; it means that within `inside`, None: everywhere.

    `is_function`: a function of this name, or a property, returns it.
    """

    name: str
    keys: tuple[ast.expr, ...] = ()
    inside: ast.FunctionDef | None = None
    is_function: bool = False

    def means(self, node: ast.AST) -> bool:
        """Whether a node lies where this name means the container."""
        whole = self.inside
        line = getattr(node, "lineno", 0)
        return whole is None or whole.lineno <= line <= (whole.end_lineno or whole.lineno)


@lru_cache(maxsize=64)
def other_names(texts: tuple[str, ...], name: str) -> tuple[OtherName, ...]:
    """Other names of what the code of `texts` calls `name`, or has in an attribute of that name."""
    found = [OtherName(name)]
    for known in found:  # it grows
        new = [one for text in texts for one in _given_on(texts, text, known)]
        found += [one for one in dict.fromkeys(new) if not any(_same(one, other) for other in found)]
        if len(found) > _MOST:
            return ()
    return tuple(found[1:])


def _same(one: OtherName, other: OtherName) -> bool:
    return one.name == other.name and other.inside in (None, one.inside)


def _given_on(texts: Sequence[str], text: str, known: OtherName) -> Iterator[OtherName]:
    """The names that a text gives to what has a name already."""
    for node in syntax.nodes_of(text):
        if isinstance(node, ast.Return) and (keys := _keys(node.value, known)) is not None:
            here = syntax.function_at(text, node.lineno)
            if here is not None:
                yield OtherName(here[1].name, keys, is_function=True)
        elif isinstance(node, ast.Assign) and (keys := _keys(node.value, known)) is not None:
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    yield OtherName(target.attr, keys)
                elif isinstance(target, ast.Name):
                    here = syntax.function_at(text, node.lineno)
                    yield OtherName(target.id, keys, here[1] if here is not None else None)
        elif isinstance(node, ast.Call):
            yield from _arguments(texts, node, known)


def _arguments(texts: Sequence[str], call: ast.Call, known: OtherName) -> Iterator[OtherName]:
    """The names that the called functions have for an argument."""
    given = [(at, _keys(one, known)) for at, one in enumerate(call.args)]
    by_name = [(one.arg, _keys(one.value, known)) for one in call.keywords if one.arg is not None]
    if all(keys is None for _, keys in (*given, *by_name)):
        return
    last = syntax.last_name(ast.unparse(call.func))
    for function in (one for text in texts for one in _called(text, last)):
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        names = names[1:] if names[:1] in (["self"], ["cls"]) else names
        for at, keys in given:
            if keys is not None and at < len(names):
                yield OtherName(names[at], keys, function)
        for name, keys in by_name:
            if keys is not None:
                yield OtherName(name, keys, function)


def _called(text: str, name: str) -> Iterator[ast.FunctionDef]:
    """The functions of this name, and the constructors of the classes."""
    for one in syntax.defined(text, name):
        if isinstance(one, ast.FunctionDef):
            yield one
        else:
            yield from (s for s in one.body if isinstance(s, ast.FunctionDef) and s.name == "__init__")


def _keys(value: ast.expr | None, known: OtherName) -> tuple[ast.expr, ...] | None:
    """The keys behind the container by which an expression reads it: of ``self.out["a"]``; None: it does not."""
    keys: list[ast.expr] = []
    while value is not None:
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            return None  # a copy
        if isinstance(value, ast.Subscript):
            keys.insert(0, value.slice)
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "setdefault":
            keys[:0] = value.args[:1]
            value = value.func.value
        else:
            break
    value = value.func if isinstance(value, ast.Call) and known.is_function else value
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", None)
    if value is None or name != known.name or not known.means(value):
        return None
    return (*known.keys, *keys)
