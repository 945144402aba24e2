"""The custom Function that was being applied when torch's own code raised, whatever the line calls it."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType, FunctionType
from typing import Any

import torch

from graphwidget.capture.lines.book import Book
from graphwidget.capture.owners import reading
from graphwidget.model import AppliedFunction, Place

__all__ = ["APPLYING", "applied_by", "name_of", "of_frames"]

APPLYING = "torch/autograd/function.py"  # its `apply` runs the `forward` of a custom Function
# The variable of each of its functions that leads to the class: `__call__` refuses to call a Function as an object.
_CLASS = {"apply": "cls", "__call__": "self"}
MOST_WRAPPERS = 10


def of_frames(frames: Sequence[FrameType], book: Book) -> AppliedFunction | None:
    """Return the Function that the innermost of these frames applies, with the place of its `forward`; None: none.

    Parameters
    ----------
    frames
        The frames of the error that the user's innermost line led to, outermost first.
    """
    classes = [cls for frame in frames if (cls := applied_by(frame)) is not None]
    return AppliedFunction(name_of(classes[-1]), _place(classes[-1], "forward", book)) if classes else None


def applied_by(frame: FrameType) -> type | None:
    """Return the Function that a frame of torch applies; None: it is another frame."""
    file = frame.f_code.co_filename.replace("\\", "/")
    name = _CLASS.get(frame.f_code.co_name)
    if name is None or not file.endswith(APPLYING):
        return None
    found = dict(reading.locals_of(frame)).get(name)
    cls = type(found) if name == "self" else found
    return cls if isinstance(cls, type) and torch.autograd.Function in reading.mro_of(cls) else None


def name_of(cls: type) -> str:
    """Return the name of a class, which no metaclass can change."""
    return str(type.__dict__["__name__"].__get__(cls))


def _place(cls: type, method: str, book: Book) -> Place | None:
    """Return the first line of a method's text, its decorators among it; None: it is not the user's own."""
    found: Any = reading.static_attribute(cls, method)
    found = found.__func__ if type(found) in (staticmethod, classmethod) else found
    for _ in range(MOST_WRAPPERS):  # a decorator's function leads to the method that it wraps
        inner = found.__dict__.get("__wrapped__") if type(found) is FunctionType else None
        if inner is None:
            break
        found = inner
    scope = book.scope(found.__code__) if type(found) is FunctionType else None
    return book.place(scope.base + found.__code__.co_firstlineno, -1, -1) if scope is not None else None
