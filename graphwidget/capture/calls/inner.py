"""Calls that the user's code makes while the engine runs another call: in a hook, or in the backward of a Function.

They have no number of their own, and are no calls of the record. Their graphs are read, so that an error of one can be
explained: what it needed, and which line freed it.
"""

from __future__ import annotations

from collections import deque
from types import FrameType

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.pending import PendingCall
from graphwidget.capture.lines.provenance import Provenance
from graphwidget.model import BackwardCall, InnerCall, Place

__all__ = ["InnerCalls"]

READ = 200  # inner calls of a cell whose graphs are read: a hook of a long loop must not cost a walk each time
REMEMBERED = 50  # inner calls of which it is known what they freed


class InnerCalls:
    """Which inner calls are read, and what the last ones freed."""

    def __init__(self, provenance: Provenance) -> None:
        self._provenance = provenance
        self._read = 0
        self._freed: deque[tuple[Place, frozenset[int]]] = deque(maxlen=REMEMBERED)

    def begin_cell(self) -> None:
        """Begin a new cell, whose first inner calls are read again."""
        self._read = 0

    def due(self, frame: FrameType) -> bool:
        """Whether the graph of an inner call made in `frame` is to be read: the user's own code makes it."""
        if self._read >= READ or not self._is_own(frame):
            return False
        self._read += 1
        return True

    def _is_own(self, frame: FrameType | None) -> bool:
        """Whether a frame of the user's own stands between a call and the engine that runs around it."""
        scope = self._provenance.lines.book.scope
        while frame is not None and frame.f_code.co_name != ti.ENGINE_CALL:
            if scope(frame.f_code) is not None:
                return True
            frame = frame.f_back
        return False

    def ended(self, call: BackwardCall, around: PendingCall | None) -> None:
        """Keep what an inner call freed; if it raised, tell the call `around` it."""
        freed_at = self._freed_at(call.failed_uid)
        if not call.retain_graph and call.executed:
            self._freed.append((call.place, frozenset(call.executed)))
        if call.result == "raised" and around is not None and around.inner is None:
            around.inner = InnerCall(call, torch.is_grad_enabled(), freed_at)

    def _freed_at(self, uid: int | None) -> Place | None:
        return next((place for place, uids in reversed(self._freed) if uid in uids), None)
