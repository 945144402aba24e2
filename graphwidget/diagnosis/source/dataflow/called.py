"""What a program defines, and which of its functions a call of an object runs; each text is walked once."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from graphwidget.diagnosis.source import syntax

__all__ = ["called_on_objects", "classes_of", "functions_of", "methods_of", "objects_of"]


@lru_cache(maxsize=256)
def classes_of(source: str) -> tuple[ast.ClassDef, ...]:
    """The classes of a text, at any depth."""
    return tuple(node for node in syntax.nodes_of(source) if isinstance(node, ast.ClassDef))


@lru_cache(maxsize=256)
def functions_of(source: str) -> tuple[ast.FunctionDef, ...]:
    """The functions of a text that stand in no block."""
    tree = syntax.parse(source)
    return tuple(one for one in tree.body if isinstance(one, ast.FunctionDef)) if tree is not None else ()


def methods_of(cls: ast.ClassDef) -> list[ast.FunctionDef]:
    """The methods of a class, without what makes its objects."""
    return [one for one in cls.body if isinstance(one, ast.FunctionDef) and one.name != "__init__"]


def objects_of(source: str, cls: str) -> tuple[str, ...]:
    """The names that a text gives to objects of a class."""
    return _made_in(source).get(cls, ())


@lru_cache(maxsize=256)
def _made_in(source: str) -> Mapping[str, tuple[str, ...]]:
    """The names that a text gives to what each name called makes: ``{"Net": ("net",)}`` for ``net = Net().to(dev)``."""
    found: dict[str, dict[str, None]] = {}
    for one in syntax.nodes_of(source):
        if not isinstance(one, ast.Assign) or len(one.targets) != 1:
            continue
        targets, values = [one.targets[0]], [one.value]
        if isinstance(targets[0], ast.Tuple) and isinstance(one.value, ast.Tuple):
            targets, values = targets[0].elts, one.value.elts
        for target, value in zip(targets, values):
            inner = value
            while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                inner = inner.func.value  # Net().to(device)
            if isinstance(inner, ast.Call):
                found.setdefault(ast.unparse(inner.func), {})[ast.unparse(target)] = None
    return {name: tuple(targets) for name, targets in found.items()}


@lru_cache(maxsize=16)
def called_on_objects(
    sources: tuple[str, ...],
) -> Mapping[str, list[tuple[int, ast.ClassDef, ast.FunctionDef]]]:
    """What a call of an object of a program's classes runs, by what is called: ``net``, ``self.net.encode``.

    With the place among the texts that the class stands in.
    """
    found: dict[str, list[tuple[int, ast.ClassDef, ast.FunctionDef]]] = {}
    for at, source in enumerate(sources):
        for cls in classes_of(source):
            objects = {name for other in sources for name in objects_of(other, cls.name)}
            for one in methods_of(cls):
                ends = ("", f".{one.name}") if one.name in ("forward", "__call__") else (f".{one.name}",)
                for name in objects:
                    for end in ends:
                        found.setdefault(f"{name}{end}", []).append((at, cls, one))
    return found
