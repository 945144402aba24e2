"""The extension that is loaded in each shell, and the tracker that is recording.

The public functions, the magics and the extension all ask here, so that none of them has to import another.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwidget.capture.tracker import Tracker
    from graphwidget.notebook.extension import Extension

__all__ = [
    "add",
    "begin_tracking",
    "current",
    "current_tracker",
    "end_tracking",
    "ended_tracker",
    "is_loaded",
    "remove",
    "tracker_of",
]

_loaded: weakref.WeakKeyDictionary[Any, Extension] = weakref.WeakKeyDictionary()  # shell -> its extension
_tracking: list[Tracker] = []  # of the `track()` blocks that are running, the innermost last
# Of the last block that has ended, and the next uid at its end. It holds plain records only.
_ended: list[tuple[Tracker, int]] = []


def add(shell: Any, extension: Extension) -> None:
    """Record that the extension is loaded in `shell`."""
    _loaded[shell] = extension


def remove(shell: Any) -> Extension | None:
    """Record that the extension is unloaded from `shell`; returns the extension, None if there was none."""
    return _loaded.pop(shell, None)


def is_loaded(shell: Any) -> bool:
    """Whether the extension is loaded in `shell`."""
    return shell in _loaded


def current() -> Extension | None:
    """The extension of the running shell."""
    if not _loaded:
        return None
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return _loaded.get(shell) if shell is not None else None


def tracker_of(shell: Any) -> Tracker:
    """The tracker of the extension in `shell`.

    Raises
    ------
    KeyError
        If the extension is not loaded there.
    """
    return _loaded[shell].tracker


def begin_tracking(tracker: Tracker) -> None:
    """A `track()` block begins."""
    _ended.clear()
    _tracking.append(tracker)


def end_tracking(tracker: Tracker) -> None:
    """A `track()` block has ended."""
    _tracking.remove(tracker)
    _ended[:] = [(tracker, tracker.identity.given)]


def ended_tracker() -> tuple[Tracker, int] | None:
    """The tracker of the last `track()` block, which has ended, and the next uid at its end; None: there is none."""
    return _ended[0] if _ended else None


def current_tracker() -> Tracker | None:
    """The tracker that is recording: of the innermost `track()` block, else of the running shell's extension."""
    if _tracking:
        return _tracking[-1]
    extension = current()
    return extension.tracker if extension is not None and extension.on else None
