"""Paths to tensors in a Python program, such as ``fit:state['h'][0]``: where a frame is known, it stands in front."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from graphwidget.diagnosis.source.syntax import statement_of

__all__ = ["Steps", "is_assignable", "is_code", "local", "root_of", "steps", "within"]

Steps = tuple[str, ...]


@lru_cache(maxsize=4096)  # asked for each leaf of each call
def local(path: str) -> str:
    """A path without the frame it was found in: ``h`` for ``step:h`` and ``sys.last_traceback: h``.

    Of ``list(step:h.values())[0]``, an element whose key no text names, ``list(h.values())[0]``.
    """
    without_keys = re.sub(r"\[.*?\]", lambda key: "_" * len(key[0]), path)
    begins = without_keys.rfind(":") + 1
    return _opened(path[begins:]) + path[begins:].lstrip() if begins else path.lstrip()


def _opened(rest: str) -> str:
    """What has to stand before the rest of a path that begins within ``list(...)``."""
    within_keys = re.sub(r"\[.*?\]", "", rest)
    return "list(" * (within_keys.count(")") - within_keys.count("("))


def within(rest: str, name: str) -> str:
    """The path of what is in a variable, given the rest of the path: ``list(kept.values())[0]``."""
    return f"{_opened(rest)}{name}{rest}"


def is_code(path: str) -> bool:
    """Whether a path can be written in a program as it is."""
    return (
        not re.search(r"__closure__|__(kw)?defaults__|gi_frame|\.grad\b|^Out\[|^_\d*$|^sys\.", path)
        and statement_of(path) is not None
    )


def is_assignable(path: str) -> bool:
    """Whether a path is one that a program can assign to: names, attributes and elements, without a call among them."""
    statement = statement_of(path)
    part = statement.value if isinstance(statement, ast.Expr) else None
    while isinstance(part, (ast.Attribute, ast.Subscript)):
        part = part.value
    return isinstance(part, ast.Name)


def root_of(path: str) -> str:
    """The variable that a path begins with: ``state`` of ``fit:state['h'][0]``, and of ``list(state.values())[1]``.

    Of what has no variable, the class: ``Net`` of ``Net(…).h``.
    """
    found = re.match(r"(?:\w+\((?!…))*(\w*)", local(path))
    return found[1] if found is not None else ""


def steps(path: str) -> Steps:
    """``state['h'][0]`` as ``state``, ``['h']``, ``[0]``."""
    return tuple(re.findall(r"^\w+|\.\w+|\[(?:'[^']*'|\"[^\"]*\"|[^\]]*)\]", path))
