"""Drops our weak references to tensors while torch swaps them: it refuses to swap tensors with weak references."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["watch"]


def watch(let_go: Callable[[Any], Callable[[], None]], problem: Callable[[BaseException], None]) -> Callable[[], None]:
    """Wrap `torch.utils.swap_tensors`, which `Module.to` and `load_state_dict` may use.

    Parameters
    ----------
    let_go
        Drops every weak reference to a tensor; returns a function that restores them after the swap.
    problem
        Called with an exception of our own; the swap continues in any case.

    Returns
    -------
    Callable
        Removes the wrapper.
    """
    original: Callable[[Any, Any], Any] = torch.utils.swap_tensors
    watching = True

    @functools.wraps(original)
    def swap_tensors(t1: Any, t2: Any) -> Any:
        restores: list[Callable[[], None]] = []
        if watching:
            try:
                restores = [let_go(tensor) for tensor in (t1, t2)]
            except Exception as error:
                problem(error)
        try:
            return original(t1, t2)
        finally:
            try:
                for restore in restores:
                    restore()
            except Exception as error:
                problem(error)

    torch.utils.swap_tensors = swap_tensors

    def end() -> None:
        nonlocal watching
        watching = False
        if torch.utils.swap_tensors is swap_tensors:  # else someone has wrapped it again
            torch.utils.swap_tensors = original

    return end
