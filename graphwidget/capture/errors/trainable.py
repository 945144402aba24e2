"""Which modules have parameters that require grad. Nothing of the user's is run for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from graphwidget import torch_internals as ti

__all__ = ["modules"]

MOST = 5000  # modules that are looked at


def modules(namespace: Mapping[str, Any]) -> dict[str, bool]:
    """The modules that variables name, with those inside them, and whether a parameter of each requires grad.

    Those without parameters are left out, and all, where there are too many. A module that keeps its parameters
    elsewhere than torch does (TorchScript) counts as one without.
    """
    found: dict[str, bool] = {}
    seen = [0]
    with ti.quiet():
        for name, value in list(namespace.items()):
            if isinstance(name, str) and not name.startswith("_") and issubclass(type(value), torch.nn.Module):
                _look(name, value, found, seen, set())
    return found if seen[0] <= MOST else {}


def _look(path: str, module: Any, found: dict[str, bool], seen: list[int], above: set[int]) -> bool | None:
    """Whether a parameter of a module, or of one inside it, requires grad; None where there is none."""
    seen[0] += 1
    if id(module) in above or seen[0] > MOST:
        return None
    own = object.__getattribute__(module, "__dict__")
    parameters = [p for p in dict(own.get("_parameters") or {}).values() if p is not None]
    answers: list[bool | None] = [ti.requires_grad(p) for p in parameters]
    for name, inside in list(dict(own.get("_modules") or {}).items()):
        if inside is not None:
            answers.append(_look(f"{path}.{name}", inside, found, seen, above | {id(module)}))
    known = [answer for answer in answers if answer is not None]
    if not known:
        return None
    found[path] = any(known)
    return found[path]
