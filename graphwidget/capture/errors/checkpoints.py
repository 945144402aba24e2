"""What a checkpoint was doing when its second run turned out to be another one. No user code runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.owners import reading
from graphwidget.model import Recomputed

__all__ = ["difference", "function", "nodes_of_call"]

MOST_MODULES = 5000  # visited to find those in evaluation mode
MOST_NODES = 200_000  # visited to find the one that saved a tensor


def _running(frames: Sequence[FrameType]) -> Iterator[Any]:
    """Yield the checkpoints that were unpacking, the innermost first."""
    for frame in reversed(frames):
        checkpoint = dict(reading.locals_of(frame)).get("frame") if frame.f_code.co_name == "unpack_hook" else None
        if hasattr(checkpoint, "recompute_fn"):
            yield checkpoint


def function(frames: Sequence[FrameType]) -> str:
    """Return the name of the function that the innermost checkpoint was running again; empty if unknown."""
    for checkpoint in _running(frames):
        found = ti.checkpointed_function(checkpoint)
        if found is not None:
            return str((found if hasattr(found, "__qualname__") else type(found)).__qualname__)
    return ""


def difference(frames: Sequence[FrameType]) -> Recomputed | None:
    """Return the first tensor that the innermost checkpoint saved otherwise, with the node that saved it before."""
    checkpoint = next(_running(frames), None)
    position = ti.first_difference(checkpoint) if checkpoint is not None else -1
    if position < 0:
        return None
    holder, evaluating = ti.holder_at(checkpoint, position), tuple(_evaluating(ti.checkpointed_function(checkpoint)))
    for node in nodes_of_call(frames) if holder is not None else ():
        for shown, read in ti.slot_readers(type(node)):
            try:
                slots = read(node)
            except (RuntimeError, AttributeError):  # released, or not to be read
                continue
            several = isinstance(slots, (tuple, list))
            for at, slot in enumerate(slots if several else (slots,)):
                if slot is not None and ti.data_of_slot(slot) is holder:
                    slot = f"{shown}[{at}]" if several else shown
                    return Recomputed(position, ti.number_of(node), slot, evaluating)
    return Recomputed(position, evaluating=evaluating)


def _evaluating(function: Any) -> Iterator[str]:
    """Yield the classes of the modules in a function that are in evaluation mode, and read `training` in `forward`."""
    work, seen = [function, getattr(function, "__self__", None)], set[int]()
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # it has no value
            work.append(cell.cell_contents)
    while work and len(seen) < MOST_MODULES:
        module = work.pop()
        if not issubclass(type(module), torch.nn.Module) or id(module) in seen:
            continue
        seen.add(id(module))
        own = reading.own_attributes(module)
        code = reading.code_of(reading.static_attribute(type(module), "forward"))
        if own.get("training") is False and code is not None and "training" in code.co_names:
            yield type(module).__name__
        work.extend((own.get("_modules") or {}).values())


def nodes_of_call(frames: Sequence[FrameType]) -> Iterator[Any]:
    """Yield the nodes below the roots of the call that failed."""
    calls = (frame for frame in frames if frame.f_code.co_name == ti.ENGINE_CALL)
    given = (dict(reading.locals_of(frame)) for frame in calls)
    roots = next((one["t_outputs"] for one in given if "t_outputs" in one), ())
    found = dict.fromkeys(node for root in roots if (node := ti.history(root, asked=False)[0]) is not None)
    work = list(found)
    while work and len(found) < MOST_NODES:
        node = work.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in found:
                found[following] = None
                work.append(following)
