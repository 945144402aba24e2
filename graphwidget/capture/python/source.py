"""The source of a Python function, and the objects that its names refer to. The function is never run.

Caveat: a file may have changed since it was compiled. Its text is used only if it has the same names as the code.
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

UNRESOLVED = object()  # for a name that refers to nothing, or to an unknown object

# ---------------------------------------------------------------- source

Function = ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef


def tree_of(code: types.CodeType) -> Function | None:
    """Return the syntax tree of the function compiled to this code; None if its source is missing or in doubt."""
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
        return ()  # for example, a cell with a magic in it
    return tuple(node for node in ast.walk(tree) if isinstance(node, Function))


def _first_line(node: Function) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _same_names(node: Function, code: types.CodeType) -> bool:
    """Whether source and code use the same names, so that one was compiled from the other."""
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
    """Return the object that a free or global name of the function, perhaps dotted, refers to now.

    `UNRESOLVED` if there is none.
    """
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
    """Return an attribute of a module, or a function that a class or object has but does not bind.

    `UNRESOLVED` for any other attribute.
    """
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
    """Return the code of a function, and any other object unchanged."""
    return value.__code__ if type(value) is types.FunctionType else value


# Their attributes can be read safely. On any other object, the look-up may run user code.
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)


def name_of(value: Any) -> str:
    """Return the name of a function, a class or an object of torch's; empty for other objects."""
    kind = type(value)
    known = issubclass(kind, (type, *_FUNCTIONS)) or kind.__module__.split(".")[0] == "torch"
    name = getattr(value, "__name__", "") if known else ""
    return name if isinstance(name, str) else ""


def comes_from(value: Any, packages: tuple[str, ...]) -> bool:
    """Whether a function or class comes from one of these packages."""
    if not issubclass(type(value), (type, types.FunctionType, types.BuiltinFunctionType)):
        return False
    home = value.__module__
    if not isinstance(home, str):  # a builtin
        home = type(getattr(value, "__self__", None)).__module__
    return home.split(".")[0] in packages
