"""Attributes that look like the flag of a tensor, and are none: ``module.requires_grad``, ``w.require_grad``.

Python lets a module, or a tensor, have any attribute. No operation reads these.
"""

from __future__ import annotations

import functools
from difflib import SequenceMatcher
from typing import Any

from graphwidget.capture.owners.reading import own_attributes

__all__ = ["false_flag"]

_FLAG = "requires_grad"
_ALIKE = 0.85  # of two names: `require_grad`, `requires_grads`, `requires_gradient`, and not `grad` or `requires`


@functools.lru_cache(maxsize=4096)
def _is_like_the_flag(name: str) -> bool:
    return SequenceMatcher(None, name, _FLAG).ratio() >= _ALIKE


def false_flag(o: Any) -> str:
    """The name of an attribute of a module or tensor that says False and looks like the flag; empty: it has none."""
    for name, value in list(own_attributes(o).items()):
        if value is False and type(name) is str and _is_like_the_flag(name):
            return name
    return ""
