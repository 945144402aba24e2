"""What a line writes to through ``.data``, which counts no version.

``w.data.mul_(2)`` writes to `w`: its text says so. Which arguments of a call are written to, no text says:
``k.data.lerp_(q.data, 0.1)`` only reads `q`, and ``init.zeros_(w.data)`` writes to `w`. So the values of arguments are
compared, the first times that a line runs, and then ever more rarely, until one has changed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.statements import Statement

__all__ = ["Target", "targets_of", "written"]

MAX_VALUES = 10_000  # values of a tensor that are compared
COMPARED = 32  # runs of a line whose arguments are all compared


class Target(NamedTuple):
    """A tensor that a line may write to through ``.data``, when the line begins.

    `key`: of its storage. `before`: some of its values; None where the text says that it is written to.
    """

    path: str
    ref: Callable[[], Any]
    key: int
    before: Any = None


def targets_of(statement: Statement, find: Callable[[str, tuple[str, ...]], Any]) -> list[Target]:
    """Return what a line that begins may write to. `find` returns the tensor of a name and its chain, or None."""
    found = []
    compares = statement.compares(COMPARED)
    for text, chain, sure in statement.hidden:
        if not sure and not compares and text not in statement.written:
            continue
        tensor = find(text, chain)
        storage = internals.storage_of(tensor) if tensor is not None else None
        if storage is None:
            continue
        before = None if sure or text in statement.written else _values(tensor)
        if sure or text in statement.written or before is not None:
            found.append(Target(text, weakref.ref(tensor), storage[0], before))
    return found


def written(statement: Statement, targets: Iterable[Target]) -> list[Target]:
    """Return what a line that has ended has written to."""
    found = []
    for one in targets:
        if one.before is not None:
            now = _values(tensor) if (tensor := one.ref()) is not None else None
            if now is None or now.shape != one.before.shape or torch.equal(now, one.before):
                continue
            statement.written.add(one.path)
        found.append(one)
    return found


def _values(tensor: Any) -> Any:
    """Return the bytes of some values of a tensor; None if they cannot be read without side effects."""
    kinds = (torch.Tensor, torch.nn.Parameter)
    if type(tensor) not in kinds or tensor.device.type != "cpu" or tensor.layout != torch.strided:
        return None  # to read a tensor of a GPU would wait for it
    try:
        with internals.grad_mode(False), internals.quiet():
            flat = tensor.detach().reshape(-1)
            return flat[:: max(1, len(flat) // MAX_VALUES)].clone().view(torch.uint8)
    except RuntimeError:
        return None  # inside a transform of `torch.func`, say
