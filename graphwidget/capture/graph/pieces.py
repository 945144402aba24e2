"""Work in pieces: generators that yield where they may be left for a while, and return what they have made."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from functools import wraps
from time import perf_counter
from typing import ParamSpec, TypeVar

__all__ = ["AtLeast", "WorkLock", "at_once", "completed", "within"]

SLICE_SECONDS = 0.03  # how long an idle kernel may be kept from what is asked of it

_Result = TypeVar("_Result")
_Given = ParamSpec("_Given")
_Left = TypeVar("_Left")
_Pieces = Generator[object, None, _Result]


class AtLeast(int):
    """A number of things of which more may turn up."""


def completed(pieces: _Pieces[_Result]) -> _Result:
    """Do all that is left; returns what the generator returns."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def at_once(in_pieces: Callable[_Given, _Pieces[_Result]]) -> Callable[_Given, _Result]:
    """The function that does all pieces and returns the result."""

    @wraps(in_pieces)
    def whole(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return completed(in_pieces(*args, **kwargs))

    return whole


def within(
    context: Callable[[], AbstractContextManager[object]], pieces: Generator[_Left, None, _Result]
) -> Generator[_Left, None, _Result]:
    """The same pieces, each of them in a context of its own: none is open while the work is left."""
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


class WorkLock(RLock):  # type: ignore[misc]  # `threading.RLock` is a function that makes one
    """A lock over which work may be left for later: whoever takes it first completes that.

    So nobody who has the lock ever sees half of it, and nobody has to ask.

    Parameters
    ----------
    problem
        Is told of exceptions of the work: they are not those of who happened to complete it.
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
        """Have work done in slices. Only for who has the lock.

        Parameters
        ----------
        work
            Is resumed with the lock held, in any thread.
        when_idle
            Has a function called once there is nothing else to do.
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
        """Go on with what is left, in this thread. While it runs nothing is left: it takes the lock itself."""
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
