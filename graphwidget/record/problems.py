"""What is wrong with a record, or with the place where one is to be written."""

from __future__ import annotations

__all__ = ["UnreadableRecord", "UnwritableRecord"]


class UnreadableRecord(ValueError):
    """A file that is no record, or one that this version cannot read. The message says what to do next.

    Examples
    --------
    >>> import graphwidget
    >>> try:
    ...     graphwidget.load(graphwidget.__file__)
    ... except graphwidget.UnreadableRecord as error:
    ...     print("it is no record" if "no record" in str(error) else error)
    it is no record
    """


class UnwritableRecord(OSError):
    """A record cannot be written there; the message says why."""
