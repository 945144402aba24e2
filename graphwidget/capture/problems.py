"""Exceptions of our own: kept as text, never raised into the user's code."""

from __future__ import annotations

from collections import deque

__all__ = ["Problems"]


class Problems(deque[str]):
    """The last exceptions of our own. Only their text is kept: their frames hold the user's variables."""

    def __init__(self, most: int = 100) -> None:
        super().__init__(maxlen=most)

    def note(self, error: BaseException) -> None:
        """Remember an exception."""
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f" ({at.tb_frame.f_code.co_filename.rpartition('/')[2]}:{at.tb_lineno})" if at is not None else ""
        self.append(f"{type(error).__name__}: {error}{where}")
