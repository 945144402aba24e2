"""Where a Python function was written, and what the names in it stand for. It is never run.

Caveat: a file may have changed since it was compiled. What stands there counts only if it has the names of the code.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import types
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["UNRESOLVED", "Function", "code_of", "comes_from", "member", "name_of", "resolve", "tree_of"]

_MAX_LINES = 20_000

UNRESOLVED = object()  # what a name stands for that stands for nothing, or for what cannot be told

# ---------------------------------------------------------------- source

Function = ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef


def tree_of(code: types.CodeType) -> Function | None:
    """The function that was compiled to this code; None where its source is not there, or not for sure."""
    lines = linecache.getlines(code.co_filename)
    if not lines or len(lines) > _MAX_LINES:
        return None
    found = [
        node
        for node in _functions(code.co_filename, "".join(lines))
        if _first_line(node) == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name
    ]
    matching = [node for node in found if _same_names(node, code)]
    return matching[0] if len(matching) == 1 else None


@functools.lru_cache(maxsize=64)
def _functions(_filename: str, source: str) -> tuple[Function, ...]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()  # a cell with a magic in it, for one
    return tuple(node for node in ast.walk(tree) if isinstance(node, Function))


def _first_line(node: Function) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _same_names(node: Function, code: types.CodeType) -> bool:
    """Whether the source is that of the code."""
    attributes = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    words = attributes | {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    words |= {alias.name for n in ast.walk(node) if isinstance(n, (ast.Import, ast.ImportFrom)) for alias in n.names}
    words |= {n.module for n in ast.walk(node) if isinstance(n, ast.ImportFrom) and n.module}
    decorators = {
        n.attr for d in getattr(node, "decorator_list", []) for n in ast.walk(d) if isinstance(n, ast.Attribute)
    }
    compiled = set(_names(code))
    return compiled <= words and attributes - decorators <= compiled


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


# ---------------------------------------------------------------- names


def resolve(function: types.FunctionType, name: str) -> Any:
    """What a free or global name of the function, perhaps dotted, stands for now; `UNRESOLVED` if nothing."""
    owner, dot, attribute = name.rpartition(".")
    if dot:
        return member(resolve(function, owner), attribute)
    code = function.__code__
    if name in code.co_freevars and function.__closure__:
        try:
            return function.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return UNRESOLVED
    return function.__globals__.get(name, getattr(builtins, name, UNRESOLVED))


def member(owner: Any, name: str) -> Any:
    """An attribute of a module, or a function that is called through a class or object but is not bound to it."""
    if type(owner) is types.ModuleType:
        return vars(owner).get(name, UNRESOLVED)  # a module may have a `__getattr__`
    if owner is torch.Tensor or owner is torch.ops:
        return getattr(owner, name, UNRESOLVED)
    found = inspect.getattr_static(owner, name, None)
    if type(found) is staticmethod:
        return found.__func__
    unbound = issubclass(type(owner), type) or inspect.getattr_static(type(owner), name, None) is not found
    return found if type(found) is types.FunctionType and unbound else UNRESOLVED


def code_of(value: Any) -> Any:
    """The code of a function; what is none, as it is."""
    return value.__code__ if type(value) is types.FunctionType else value


# Of these, attributes can be read. Of any other object, looking for one may run the user's code.
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)


def name_of(value: Any) -> str:
    """The name of a function or class; empty for other objects, unless they are torch's own."""
    kind = type(value)
    known = issubclass(kind, (type, *_FUNCTIONS)) or kind.__module__.split(".")[0] == "torch"
    name = getattr(value, "__name__", "") if known else ""
    return name if isinstance(name, str) else ""


def comes_from(value: Any, packages: tuple[str, ...]) -> bool:
    """Whether a function or class comes from one of these packages."""
    if not issubclass(type(value), (type, types.FunctionType, types.BuiltinFunctionType)):
        return False
    home = value.__module__
    if not isinstance(home, str):  # of a builtin
        home = type(getattr(value, "__self__", None)).__module__
    return home.split(".")[0] in packages
