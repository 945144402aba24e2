"""Functions that are called with events."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from graphwidget.model import Event

__all__ = ["Listeners"]


class Listeners:
    """Calls functions with every event, in the thread in which it happens.

    Parameters
    ----------
    problem
        Called with an exception that a listener raised.
    """

    def __init__(self, problem: Callable[[BaseException], None]) -> None:
        self.problem = problem
        self._callbacks: list[Callable[[Event], None]] = []
        self._last_of_many = 0.0

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call `callback` with every event. Returns a function that unsubscribes it."""
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return unsubscribe

    def tell(self, event: Event) -> None:
        """Call all listeners. An exception of one reaches neither the others nor the user."""
        for callback in list(self._callbacks):
            try:
                callback(event)
            except Exception as error:
                self.problem(error)

    def tell_of_many(self, event: Callable[[], Event], seconds: float) -> None:
        """Call all listeners with one of many events, if the last such call was long enough ago."""
        if self._callbacks and perf_counter() - self._last_of_many > seconds:
            self.tell(event())
            self._last_of_many = perf_counter()
