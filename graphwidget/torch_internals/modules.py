"""The hooks of modules, which modules keep in attributes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["has_full_backward_hook"]


def has_full_backward_hook(attributes: Mapping[str, Any]) -> bool:
    """Whether a module wraps its inputs and outputs in a node, to call full backward hooks from there.

    Parameters
    ----------
    attributes
        The module's own attributes: reading them runs no code of the module.
    """
    full = attributes.get("_backward_hooks") and attributes.get("_is_full_backward_hook") is True
    return bool(full or attributes.get("_backward_pre_hooks"))
