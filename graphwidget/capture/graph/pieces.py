"""Work in pieces: generators that yield where they may be suspended, and return their result."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from functools import wraps
from time import perf_counter
from typing import ParamSpec, TypeVar

__all__ = ["AtLeast", "WorkLock", "at_once", "completed", "within"]

SLICE_SECONDS = 0.03  # how long one piece may delay the next request to an idle kernel

_Result = TypeVar("_Result")
_Given = ParamSpec("_Given")
_Left = TypeVar("_Left")
_Pieces = Generator[object, None, _Result]


class AtLeast(int):
    """A count that may still grow."""


def completed(pieces: _Pieces[_Result]) -> _Result:
    """Run a generator to its end; returns its result."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def at_once(in_pieces: Callable[_Given, _Pieces[_Result]]) -> Callable[_Given, _Result]:
    """A function that runs all pieces of `in_pieces` and returns the result."""

    @wraps(in_pieces)
    def whole(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return completed(in_pieces(*args, **kwargs))

    return whole


def within(
    context: Callable[[], AbstractContextManager[object]], pieces: Generator[_Left, None, _Result]
) -> Generator[_Left, None, _Result]:
    """The same pieces, each in its own context. No context is open while the work is suspended."""
    try:
        while True:
            with context():
                try:
                    left = next(pieces)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
            yield left
    finally:
        with context():
            pieces.close()


class WorkLock(RLock):  # type: ignore[misc]  # `threading.RLock` is a function that returns an RLock
    """A lock that can have pending work: whoever takes the lock next completes that work first.

    So no holder of the lock ever sees the work half done, and none has to check for it.

    Parameters
    ----------
    problem
        Called with an exception of the work: it must not be raised in whoever happens to complete the work.
    """

    def __new__(cls, problem: Callable[[Exception], None]) -> WorkLock:  # noqa: ARG004
        return super().__new__(cls)

    def __init__(self, problem: Callable[[Exception], None]) -> None:
        self._problem = problem
        self._left: _Pieces[object] | None = None

    def __enter__(self) -> bool:  # type: ignore[override]
        self.acquire()
        if self._left is not None:
            try:
                self._do(float("inf"))
            except BaseException:  # an interrupt
                self.release()
                raise
        return True

    def leave(self, work: _Pieces[object], when_idle: Callable[[Callable[[], None]], object]) -> None:
        """Leave work to be done in slices. The caller must hold the lock.

        Parameters
        ----------
        work
            A generator. It is resumed with the lock held, in any thread.
        when_idle
            Schedules a function to be called once the kernel is idle.
        """

        def go_on() -> None:
            self.acquire()
            try:
                self._do(perf_counter() + SLICE_SECONDS)
            finally:
                self.release()
            if self._left is work:
                when_idle(go_on)

        self._left = work
        when_idle(go_on)

    def _do(self, until: float) -> None:
        """Continue the pending work. It is not pending while it runs, because it takes the lock itself."""
        work, self._left = self._left, None
        try:
            for _ in work or ():
                if perf_counter() >= until:
                    self._left = work
                    return
        except Exception as error:
            self._problem(error)
        except BaseException:  # an interrupt: its traceback must not keep what the work holds
            if work is not None:
                work.close()
            raise
