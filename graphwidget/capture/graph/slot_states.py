"""The state of one saved tensor, found without unpacking what a hook packed and without changing the graph.

* A tensor at version 0 that requires grad is HELD: nothing can have been modified since.
* Otherwise the slot is unpacked (a comparison of two numbers where no hook is set), which raises if STALE.
* A saved view that is stale is not unpacked: torch would make a new node for it, with a new number. The state is known
  without that.
"""

from __future__ import annotations

import dis
import threading
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.model import SlotState, torch_messages

__all__ = [
    "DETACHED",
    "FREED",
    "HELD",
    "PACKED",
    "STALE",
    "UNKNOWN",
    "UNSAVED",
    "never_saves",
    "on_another_thread",
    "unpack",
    "unpack_slot",
]

HELD, FREED, STALE, PACKED, UNSAVED, UNKNOWN = (int(state) for state in SlotState)
DETACHED = -2  # a saved input that was `.detach_()`ed since; the columns show it as STALE


def unpack(node: Any, data: Any, shown: str) -> int:
    """Unpack a slot that has no hook and return its state.

    Parameters
    ----------
    data
        The tensor in the slot.
    shown
        The name of the slot.
    """
    slot, saved = ti.slot_of(node, shown), ti.unpacking_attribute(node, shown)
    if saved is None:
        return _unpack_one_of_many(node, slot, data, shown)
    try:
        got = getattr(node, saved)
    except RuntimeError as error:
        state = _state_of(error)
        if state == STALE and not ti.requires_grad(data) and not ti.is_output_slot(shown):
            return unpack_slot(slot, node, saved) or STALE  # torch checks for `.detach_()` before versions
        return state
    # Unpacking through the attribute hides a `.detach_()`, because torch then knows the node; the slot alone does not.
    # (An output that was unpacked is not `data`.)
    if got is data and not ti.requires_grad(data):
        return unpack_slot(slot, node, saved)
    return HELD


def unpack_slot(slot: Any, node: Any = None, saved: str | None = None) -> int:
    """Unpack a slot without its node and return its state. An output then looks as if it were detached.

    Before torch 2.12 a slot cannot be unpacked alone. There the node's attribute `saved` is used, if one is given: it
    finds STALE slots, but reports one that was `.detach_()`ed as HELD.
    """
    unpack: Callable[[], Any] | None = getattr(slot, "unpack", None)
    if unpack is None:
        if saved is None:
            return UNKNOWN
        unpack = partial(getattr, node, saved)
    try:
        unpack()
    except RuntimeError as error:
        return _state_of(error)
    return HELD


def on_another_thread(work: Callable[[], None], patience: float | None = None) -> bool:
    """Run `work` on a new thread and wait for it, at most `patience` seconds. Its exceptions are dropped.

    Returns
    -------
    bool
        Whether it ended in time.
    """

    def guarded() -> None:
        with ti.quiet():
            try:
                work()
            except Exception:
                return

    thread = threading.Thread(target=guarded, name="graphwidget-slots", daemon=False)
    thread.start()
    thread.join(patience)
    return not thread.is_alive()


def _unpack_one_of_many(node: Any, slot: Any, data: Any, shown: str) -> int:
    """Unpack one of a list or of a custom Function's saved tensors. Alone, an output looks as if it were detached."""
    state = unpack_slot(slot)
    if state not in (DETACHED, UNKNOWN):
        return state
    custom = ti.is_custom_function(type(node))
    if state == DETACHED and not custom and not ti.is_output_slot(shown):
        return DETACHED
    if ti.version_of(data) <= 0:
        return HELD
    try:
        ti.unpack_all(node, shown)
    except RuntimeError as error:
        found = _state_of(error)
        return STALE if found == STALE else UNKNOWN
    return HELD


def _state_of(error: RuntimeError) -> int:
    if torch_messages.says(error, torch_messages.MODIFIED):
        return STALE
    if torch_messages.says(error, torch_messages.DETACHED):
        return DETACHED
    if torch_messages.says(error, torch_messages.FREED):
        return FREED
    return UNKNOWN


def never_saves(function: Any) -> bool:
    """Whether a function uses its context (first argument) only for attributes other than `save_for_backward`."""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_argcount or "save_for_backward" in code.co_names:
        return False
    context = code.co_varnames[0]
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("RESUME", "CACHE")]
    for step, after in pairwise([*steps, steps[-1]]):
        named = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if context in named and (
            step.opname.count("FAST") != 1 or "_ATTR" not in after.opname and "METHOD" not in after.opname
        ):
            return False
    return True
