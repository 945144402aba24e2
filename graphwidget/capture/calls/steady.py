"""What a call of a steady line costs: see `recognition`. It does the least that the record needs."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.pending import PendingCall, engine_arguments

if TYPE_CHECKING:
    from graphwidget.capture.calls.log import CallLog

__all__ = ["SteadyCalls"]


class SteadyCalls:
    """Begins and ends the calls of steady lines. Only calls that no other call is running beside are among them."""

    def __init__(self, log: CallLog) -> None:
        self.log, self.recognition, self.lines = log, log.recognition, log.provenance.lines

    def begin(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PendingCall | None:
        """Return a call that is like the one before it; None: the log has to look at it."""
        log, lines = self.log, self.lines
        try:
            if log.running or log.begins is not None or not self.recognition.any_steady or ti.in_backward(log):
                return None
            began = perf_counter()
            paused = lines.pause()
            if paused is None and lines.slow:  # not traced, or no longer by us alone
                return None
            try:
                with ti.quiet():
                    pending = self._like_before(outputs, engine_arguments(args, kwargs))
                if pending is not None:
                    pending.n = log.count
                    log.count += 1
                    log.running[pending.n] = pending
                    self.recognition.spend(perf_counter() - began)
                return pending
            finally:
                lines.unpause(paused)
        except Exception as error:
            log.problem(error)
            return None

    def _like_before(self, outputs: Any, arguments: tuple[Any, ...]) -> PendingCall | None:
        place = self.lines.where(sys._getframe(3))
        if place is None or ti.is_fake(outputs):
            return None
        return self.recognition.at_once(place, self.lines.boundary().last, outputs, arguments)

    def end(self, pending: PendingCall) -> None:
        """Count a call that `begin` returned and that has not raised."""
        log, lines = self.log, self.lines
        try:
            began = perf_counter()
            paused = lines.pause()
            try:
                lines.boundary()
                with log.lock:
                    log.running.pop(pending.n, None)
                    if pending.model is not None:
                        log.count_like(pending, pending.model)
            finally:
                self.recognition.spend(perf_counter() - began)
                lines.unpause(paused)
        except Exception as error:
            log.problem(error)
