"""Parameters that optimizers hold, of which a leaf that backward reaches has the name and the values: it is a copy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch

from graphwidget import torch_internals as internals

__all__ = ["Twins"]

_MOST_COMPARED = 10_000  # values of each parameter


class Twins:
    """Asked for leaves one by one.

    Parameters
    ----------
    held
        What optimizers hold that have made a step.
    name
        Returns the name of a tensor; empty: it has none.
    """

    def __init__(self, held: Iterable[Any], name: Callable[[Any], str]) -> None:
        self._by_shape: dict[tuple[int, ...], list[tuple[str, Any]]] = {}
        for one in held:
            path = name(one)
            if path and internals.leaf_and_grad(one)[1] is None:
                self._by_shape.setdefault(internals.shape_of(one), []).append((path, one))

    def of(self, leaf: Any, path: str) -> str:
        """The name of the only one that has no gradient, is called the same in its module, and has the same values."""
        alike = self._by_shape.get(internals.shape_of(leaf), [])
        found = [other for other, one in alike if _same_name(path, other) and _same_values(leaf, one)]
        return found[0] if len(found) == 1 else ""


def _same_name(path: str, other: str) -> bool:
    """Whether two paths end with the same name: a parameter's, behind that of a module."""
    ends = [re.findall(r"\w+", one)[-2:] for one in (path, other)]
    return ends[0] == ends[1] or min(map(len, ends)) < 2 and ends[0][-1:] == ends[1][-1:]


def _same_values(leaf: Any, one: Any) -> bool:
    if not (internals.has_plain_values(leaf) and internals.has_plain_values(one)):
        return False
    with torch.no_grad(), internals.quiet():
        pair = [tensor.detach().flatten()[:_MOST_COMPARED].cpu() for tensor in (leaf, one)]
        return pair[0].dtype == pair[1].dtype and bool(torch.equal(*pair))
