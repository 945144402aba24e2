"""torch swaps two tensors only if nobody refers to them weakly. Those of us who do let go of them for that long."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["watch"]


def watch(let_go: Callable[[Any], Callable[[], None]], problem: Callable[[BaseException], None]) -> Callable[[], None]:
    """Have `torch.utils.swap_tensors` (which `Module.to` and `load_state_dict` may use) ask us first.

    Parameters
    ----------
    let_go
        Drops every weak reference to a tensor; returns what takes hold of it again, after the swap.
    problem
        Is told of an exception of our own; the swap goes on in any case.

    Returns
    -------
    Callable
        Ends it.
    """
    original: Callable[[Any, Any], Any] = torch.utils.swap_tensors
    watching = True

    @functools.wraps(original)
    def swap_tensors(t1: Any, t2: Any) -> Any:
        take_hold: list[Callable[[], None]] = []
        if watching:
            try:
                take_hold = [let_go(tensor) for tensor in (t1, t2)]
            except Exception as error:
                problem(error)
        try:
            return original(t1, t2)
        finally:
            try:
                for again in take_hold:
                    again()
            except Exception as error:
                problem(error)

    torch.utils.swap_tensors = swap_tensors

    def end() -> None:
        nonlocal watching
        watching = False
        if torch.utils.swap_tensors is swap_tensors:  # else somebody has wrapped it once more
            torch.utils.swap_tensors = original

    return end
