"""Methods that have a twin with a derivative, as `sample` has `rsample`: known from the object, while the method runs.

It is torch's own convention, and libraries that draw samples follow it: the twin has the name of the method behind an
"r", and the object says by ``has_rsample`` whether it works. Where it does not, a subclass that is made in the same way
may have it: `OneHotCategoricalStraightThrough` of `OneHotCategorical`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

__all__ = ["twins_now"]

_MOST_FRAMES = 60


def twins_now(frame: FrameType | None) -> tuple[tuple[str, str], ...]:
    """Return what may stand in place of the methods that are running: ``(("sample", "rsample"),)``.

    An empty second name: the object says that it has no twin. Pairs of classes: the second has the twin.

    Parameters
    ----------
    frame
        The innermost frame.
    """
    found: dict[str, str] = {}
    for owner, method in _methods(frame):
        twin = f"r{method}"
        if not (callable(getattr(type(owner), twin, None)) and hasattr(type(owner), f"has_{twin}")):
            continue
        if _says(owner, f"has_{twin}"):
            found[method] = twin
            continue
        made = _made_alike(type(owner), twin)
        if made is not None:
            found[type(owner).__name__], found[method] = made.__name__, twin
        elif not any(name[:1].isupper() for name in found):  # an object around one of such a class has what that has
            found[method] = ""
    return tuple(found.items())


def _methods(frame: FrameType | None) -> Iterator[tuple[Any, str]]:
    """The objects whose methods are running, with the names of these, the innermost first."""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        code = frame.f_code
        if code.co_argcount and not code.co_name.startswith(("_", "<")) and code.co_varnames[0] == "self":
            owner = frame.f_locals.get("self")
            if owner is not None:
                yield owner, code.co_name
        frame = frame.f_back


def _says(owner: Any, flag: str) -> bool:
    try:
        return getattr(owner, flag) is True
    except Exception:  # a property of a program's own
        return False


def _made_alike(kind: type, twin: str) -> type | None:
    """The only subclass that stands beside a class, is made of the same arguments, and has the twin."""
    try:
        found = [one for one in kind.__subclasses__() if vars(one).get(f"has_{twin}") is True]
        found = [one for one in found if inspect.signature(one) == inspect.signature(kind)]
    except (TypeError, ValueError):
        return None
    beside = [one for one in found if getattr(sys.modules.get(kind.__module__), one.__name__, None) is one]
    return beside[0] if len(beside) == 1 else None
