"""The kinds of the objects on the path to a tensor: a module, an optimizer, a loader, a container of tensors.

They decide whether an edit may delete or rebind a name. No user code runs to find them: see `reading`.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler

from graphwidget import torch_internals as internals
from graphwidget.capture.owners import reading
from graphwidget.capture.owners.plans import ATOMS
from graphwidget.capture.owners.reading import mro_of

MOST = 2000  # names looked up
SAMPLE = 64  # elements of a container that are inspected
_DEPTH = 3  # nesting levels of containers that are inspected
_BY_CLASS: tuple[tuple[type, str], ...] = (
    (torch.nn.Parameter, "parameter"),
    (torch.nn.Module, "module"),
    (torch.optim.Optimizer, "optimizer"),
    (LRScheduler, "optimizer"),
    (torch.utils.data.DataLoader, "loader"),
    (torch.utils.data.Dataset, "loader"),
    (torch.utils.data.Sampler, "loader"),
)
_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_PLAIN = ("tensor", "container", "value")


def kinds(paths: Iterable[str], namespaces: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the kind of the object at each path, and at each prefix of a path.

    A kind is ``module``, ``parameter``, ``buffer``, ``optimizer``, ``loader``, ``leaf`` (a tensor that requires grad
    and has no graph), ``leaves`` (a container of leaves), ``tensor``, ``container`` (of tensors and plain values only),
    ``value`` (a number, a text) or ``object``. A container that holds an object which must not be deleted has the kind
    of that object. A path that cannot be followed is left out.

    Parameters
    ----------
    namespaces
        Function name -> its local variables; ``""`` -> the notebook's variables.
    """
    found: dict[str, str] = {}
    with internals.quiet():
        for path in dict.fromkeys(paths):
            function, _, rest = path.rpartition(":")
            names = namespaces.get(function)
            if names is not None and len(found) < MOST:
                _follow(_tree(rest), names, f"{function}:" if function else "", found)
    return found


def _tree(path: str) -> ast.expr | None:
    try:
        return ast.parse(path, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


class _Missing:
    """Marks a path that leads nowhere."""


def _follow(tree: ast.expr | None, names: Mapping[str, Any], prefix: str, found: dict[str, str]) -> None:
    steps: list[ast.expr] = []
    while isinstance(tree, (ast.Attribute, ast.Subscript)):
        steps.append(tree)
        tree = tree.value
    if not isinstance(tree, ast.Name) or tree.id not in names:
        return
    value, text, buffer = names[tree.id], prefix + tree.id, False
    found.setdefault(text, kind(value))
    for step in reversed(steps):
        owner, value = value, _inside(value, step)
        if value is _Missing:
            return
        buffer = isinstance(step, ast.Attribute) and _is_buffer(owner, step.attr)
        text = prefix + ast.unparse(step)
        found.setdefault(text, "buffer" if buffer else kind(value))


def _inside(owner: Any, step: ast.expr) -> Any:
    """Return the attribute or element of `owner` that one step of a path leads to."""
    if isinstance(step, ast.Attribute):
        value = reading.attribute(owner, step.attr)
        return _Missing if value is None else value
    key = step.slice.value if isinstance(step, ast.Subscript) and isinstance(step.slice, ast.Constant) else _Missing
    mro = mro_of(type(owner))
    if torch.nn.Module in mro:
        own = reading.own_attributes(owner)
        inside = {**(own.get("_parameters") or {}), **(own.get("_modules") or {})}
        return inside.get(key, inside.get(str(key), _Missing))
    base = next((cls for cls in (list, tuple, dict) if cls in mro), None)
    if base is dict:
        return dict.get(owner, key, _Missing)
    if base is None or type(key) is not int or not -base.__len__(owner) <= key < base.__len__(owner):
        return _Missing
    return base.__getitem__(owner, key)


def _is_buffer(owner: Any, name: str) -> bool:
    return torch.nn.Module in mro_of(type(owner)) and name in (reading.own_attributes(owner).get("_buffers") or ())


def kind(value: Any, depth: int = 0) -> str:
    """Return the kind of an object, as `kinds` describes it."""
    cls = type(value)
    mro = mro_of(cls)
    named = next((word for base, word in _BY_CLASS if base in mro), None)
    if named is not None:
        return named
    if torch.Tensor in mro:
        return "leaf" if internals.requires_grad(value) and reading.is_leaf(value) else "tensor"
    base = next((one for one in _CONTAINERS if one in mro), None)
    if base is not None:
        elements = iter(dict.values(value)) if base is dict else base.__iter__(value)
        inside = (kind(one, depth + 1) for one in islice(elements, SAMPLE))
        found = next((one for one in inside if one not in _PLAIN), "container") if depth < _DEPTH else "container"
        return "leaves" if found == "leaf" else found
    return "value" if cls in ATOMS else "object"
