"""The modules that running code has names for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import torch

__all__ = ["modules_of"]


def modules_of(parameters: list[Any], frames: Iterable[FrameType]) -> Iterator[tuple[str, Any]]:
    """The variables of running code that hold the smallest modules with such parameters, each with one of them."""
    left = {id(one): one for one in parameters}
    found: list[tuple[int, str, set[int]]] = []
    for frame in frames:
        for name, value in (*frame.f_locals.items(), *frame.f_globals.items()):
            if isinstance(value, torch.nn.Module) and not name.startswith("_"):
                own = {id(one) for one in value.parameters()}
                found.append((len(own), name, own & set(left)))
            elif name == "self":
                for attribute, one in getattr(value, "__dict__", {}).items():
                    if isinstance(one, torch.nn.Module):
                        own = {id(each) for each in one.parameters()}
                        found.append((len(own), f"self.{attribute}", own & set(left)))
    for _, name, own in sorted(found, key=lambda one: one[0]):
        mine = own & set(left)
        if mine:
            yield name, left[next(iter(mine))]
            left = {key: one for key, one in left.items() if key not in mine}
