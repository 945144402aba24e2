"""A child process that is stopped, with all that it started, when it takes too much: time, memory, output, processes.

Memory is what the process and its descendants have resident (`RLIMIT_AS` would count what torch and CUDA only reserve,
which is many gigabytes). It is looked at ten times a second; where the system itself runs out of memory in between, the
child is the first that it ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

import psutil

from graphwidget.trials.children import Launch

__all__ = ["Ending", "Limits", "supervise"]

_LOOK = 0.1  # seconds between two looks
_TAIL = 4000  # bytes of the output that are kept
_STRAYS = 20  # times that it is looked for what was left


@dataclass(frozen=True)
class Limits:
    """How much a child may take: seconds, bytes of memory, bytes of output, processes at one time."""

    seconds: float
    memory: int
    output: int = 16_000_000
    processes: int = 64


@dataclass(frozen=True)
class Ending:
    """How a child ended.

    Attributes
    ----------
    stopped
        Why it was stopped, as the end of "it was stopped: it ..."; empty: it ended by itself.
    status
        Its exit status, below zero for a signal.
    tail
        The end of its output.
    seconds, memory
        How long it ran, and the most memory that was seen.
    """

    stopped: str
    status: int
    tail: str
    seconds: float
    memory: int


def supervise(launch: Launch, limits: Limits, cancelled: Callable[[], bool] = lambda: False) -> Ending:
    """Run a child without input until it ends or is stopped. Nothing that it started is left.

    Parameters
    ----------
    launch
        Begins it.
    cancelled
        Asked at each look whether to stop.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile() as output, _Family(launch, output) as child:
        stopped = ""
        while child.process.poll() is None and not stopped:
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(_LOOK)
            child.look()
            if cancelled():
                stopped = "was cancelled"
            elif time.monotonic() - began > limits.seconds:
                stopped = f"ran longer than {limits.seconds:.0f} s"
            elif child.memory > limits.memory and child.own_memory() > limits.memory:
                stopped = f"took more than {limits.memory / 1e9:.1f} GB of memory"
            elif os.fstat(output.fileno()).st_size > limits.output:
                stopped = f"printed more than {limits.output / 1e6:.0f} MB"
            elif len(child.family) > limits.processes:
                stopped = f"started more than {limits.processes} processes"
        child.stop()
        return Ending(stopped, child.process.wait(), _tail(output), time.monotonic() - began, child.peak)


class _Family:
    """A process in a session of its own, and its descendants."""

    def __init__(self, launch: Launch, output: IO[bytes]) -> None:
        posix = os.name == "posix"
        there, here = os.pipe() if posix else (-1, -1)
        self._pipe = here
        try:
            self.process, self._strays = launch(output, there)
        finally:
            if posix:
                os.close(there)
        self.family: dict[int, psutil.Process] = {}
        self.memory = self.peak = 0
        with suppress(psutil.Error):
            self.family[self.process.pid] = psutil.Process(self.process.pid)

    def __enter__(self) -> _Family:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def look(self) -> None:
        """See what there is of it now."""
        for pid in psutil.pids() if hasattr(os, "getsid") else ():
            with suppress(OSError, psutil.Error):
                if pid not in self.family and os.getsid(pid) == self.process.pid:
                    self.family[pid] = psutil.Process(pid)
        with suppress(psutil.Error):
            descendants = psutil.Process(self.process.pid).children(recursive=True)
            self.family.update({one.pid: one for one in descendants if one.pid not in self.family})
        self.family = {pid: one for pid, one in self.family.items() if one.is_running()}
        sizes = []
        for one in self.family.values():
            with suppress(psutil.Error):
                memory = one.memory_info()
                sizes.append(memory.rss - getattr(memory, "shared", 0))
        self.memory = sum(sizes)
        self.peak = max(self.peak, self.memory)

    def own_memory(self) -> int:
        """Its memory, where pages that processes share count once; this takes longer than a look."""
        total = 0
        for one in self.family.values():
            with suppress(psutil.Error):
                memory = one.memory_full_info()
                total += getattr(memory, "pss", memory.rss)
        return total

    def stop(self) -> None:
        """End what is left of it. Once the group is gone, no member of it can have started another one."""
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
        for one in self.family.values():
            with suppress(psutil.Error):  # knows its own process from another that has got its number
                one.kill()
        self.process.wait()
        for _ in range(_STRAYS):
            strays = self._strays()
            if not strays:
                break
            for one in strays:
                with suppress(psutil.Error):
                    one.kill()


def _tail(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _TAIL))
    return output.read().decode("utf-8", "replace")
