"""The tensors whose `.grad` was None at a failed line: the error does not name them. No user code runs."""

from __future__ import annotations

import ast
import re
from types import FrameType
from typing import Any, Literal

from graphwidget import torch_internals as ti
from graphwidget.capture.owners import reading

Kind = Literal["leaf", "computed", "plain"]

_READ = re.compile(r"""((?:[A-Za-z_]\w*)(?:\.\w+|\[(?:\w+|'[^']*'|"[^"]*")\])*)\.grad\b(?!\s*\()""")


def kinds(frame: FrameType, line: str) -> dict[str, Kind]:
    """Find the tensors whose `.grad` a line reads although it is None.

    Parameters
    ----------
    frame
        The frame that failed. Its variables still have their values from the error.
    line
        The text of the failed line.

    Returns
    -------
    Path in the line, as `ast.unparse` writes it -> kind of the tensor: a ``"leaf"`` that requires grad, ``"computed"``
    from such leaves, or ``"plain"`` without grad. Elements are found by a number, a text, or a variable that is one
    (``ws[i]``); those with a computed index (``ws[i + 1]``) are left out.
    """
    found: dict[str, Kind] = {}
    asked = dict.fromkeys(_READ.findall(line))
    variables = {**frame.f_globals, **dict(reading.locals_of(frame))} if asked else {}
    with ti.quiet():
        for path in asked:
            node = ast.parse(path, mode="eval").body
            value = _value(variables, node)
            if not ti.is_tensor(value):
                continue
            is_leaf, grad = ti.leaf_and_grad(value)
            if grad is None:
                found[ast.unparse(node)] = "plain" if not ti.requires_grad(value) else "leaf" if is_leaf else "computed"
    return found


def _value(variables: dict[str, Any], node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return variables.get(node.id)
    if isinstance(node, ast.Attribute):
        return reading.attribute(_value(variables, node.value), node.attr)
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else _value(variables, node.slice)
        return _element(_value(variables, node.value), key)
    return None


def _element(within: Any, key: Any) -> Any:
    """An element of a list, a tuple or a dict; types of the user's own may run code of theirs."""
    if type(within) in (list, tuple) and type(key) is int and -len(within) <= key < len(within):
        return within[key]
    return within.get(key) if type(within) is dict and type(key) in (int, str) else None
