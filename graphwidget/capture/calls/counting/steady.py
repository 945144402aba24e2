"""What a call of a steady line costs: see `recognition`. It does the least that the record needs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.pending import PendingCall
from graphwidget.capture.lines.provenance import NOWHERE

if TYPE_CHECKING:
    from graphwidget.capture.calls.log import CallLog

__all__ = ["SteadyCalls"]


MOST_FRAMES = 12  # between the user's code and the engine, in torch's functions that call it


class SteadyCalls:
    """Begins and ends the calls of steady lines. Only calls that no other call is running beside are among them.

    Python's memory is cold after torch's work, so each function and object that this touches costs more than usual.
    """

    def __init__(self, log: CallLog) -> None:
        self.log, self.recognition, self.lines = log, log.recognition, log.provenance.lines

    def begin(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PendingCall | None:
        """Return a call that is like the one before it; None: the log has to look at it."""
        log, lines = self.log, self.lines
        if not self.recognition.any_steady or log.running or log.begins is not None or ti.in_backward(log):
            return None
        if log.elsewhere is not NOWHERE:  # a button
            return None
        try:
            paused = lines.pause()
            if paused is None and lines.slow:  # not traced, or no longer by us alone
                return None
            try:
                return self._like_before(outputs, args, kwargs)
            finally:
                lines.unpause(paused)
        except Exception as error:
            log.problem(error)
            return None

    def _like_before(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PendingCall | None:
        log, thread = self.log, self.lines.state()
        top, frame = thread.top, sys._getframe(3)
        if (
            top is None
            or len(outputs) != 1
            or len(args) < 4
            or type(outputs[0]) is not torch.Tensor
            or ti.is_fake(outputs)
        ):
            return None
        for _ in range(MOST_FRAMES):
            if frame is None or id(frame) == top.frame_id:
                break
            frame = frame.f_back  # type: ignore[assignment]
        else:
            return None
        if frame is None or top.code_id != id(frame.f_code):
            return None
        newest = thread.boundary()
        line = (top.base + (frame.f_lineno or 0), top.stack)
        with ti.quiet():
            pending = self.recognition.at_once(line, newest, outputs[0], args, kwargs)
        if pending is not None:
            pending.place = (*line, top.iteration())
            pending.n = log.count
            log.count += 1
            log.running[pending.n] = pending
            log.around(False)
        return pending

    def end(self, pending: PendingCall) -> None:
        """Count a call that `begin` returned and that has not raised."""
        log, lines = self.log, self.lines
        try:
            paused = lines.pause()
            try:
                with log.lock:
                    del log.running[pending.n]
                    log.around(True)
                    if pending.model is not None:
                        log.count_like(pending, pending.model)
            finally:
                lines.unpause(paused)
        except Exception as error:
            log.problem(error)
