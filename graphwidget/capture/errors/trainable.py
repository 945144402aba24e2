"""Finds the modules with parameters that require grad. No user code runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from graphwidget import torch_internals as ti

__all__ = ["modules"]

MOST = 5000  # modules visited


def modules(namespace: Mapping[str, Any]) -> dict[str, bool]:
    """Return, for the modules in variables and their submodules, path -> whether a parameter requires grad.

    Modules without parameters are left out; if there are too many modules, the result is empty. A module that does not
    keep its parameters where torch does (TorchScript) counts as one without.
    """
    found: dict[str, bool] = {}
    seen = [0]
    with ti.quiet():
        for name, value in list(namespace.items()):
            if isinstance(name, str) and not name.startswith("_") and issubclass(type(value), torch.nn.Module):
                _visit(name, value, found, seen, set())
    return found if seen[0] <= MOST else {}


def _visit(path: str, module: Any, found: dict[str, bool], seen: list[int], above: set[int]) -> bool | None:
    """Whether a parameter of a module or its submodules requires grad; None if there is no parameter."""
    seen[0] += 1
    if id(module) in above or seen[0] > MOST:
        return None
    own = object.__getattribute__(module, "__dict__")
    parameters = [p for p in dict(own.get("_parameters") or {}).values() if p is not None]
    answers: list[bool | None] = [ti.requires_grad(p) for p in parameters]
    for name, inside in list(dict(own.get("_modules") or {}).items()):
        if inside is not None:
            answers.append(_visit(f"{path}.{name}", inside, found, seen, above | {id(module)}))
    known = [answer for answer in answers if answer is not None]
    if not known:
        return None
    found[path] = any(known)
    return found[path]
