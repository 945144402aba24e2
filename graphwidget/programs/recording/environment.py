"""Recording that the environment asks for: in this process, and in those that it starts.

``GRAPHWIDGET_RECORD=DIR`` makes every process that imports graphwidget write a record into DIR, from when it imports
torch on; one file a process, named by its program, its rank and its number, made at the first backward call. A path
that ends with ``.gwz`` names the files beside it. ``graphwidget run`` hands that on to the processes that its program
starts, also to those that do not import graphwidget: by a folder at the front of ``PYTHONPATH`` (`hook`). Where nobody
has asked for a record, only the ranks of a job that torch starts write one, into the working directory: no other place
shows what a rank met.

This file is imported with graphwidget itself, so it imports little.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwidget.capture.tracker import Tracker

__all__ = ["begin", "follow", "hand_on", "take"]

RECORD = "GRAPHWIDGET_RECORD"
MOST_MB = "GRAPHWIDGET_RECORD_MAX_MB"
RUN = "GRAPHWIDGET_RUN"  # the number of the `run` whose child this is
RANKS = "GRAPHWIDGET_RECORD_RANKS"  # set: only ranks write
_HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")
_OF_A_RANK = ("RANK", "TORCHELASTIC_RUN_ID")  # what torch sets in the processes that it starts

_waiting: list[Any] = []  # the finder that waits for torch


def wanted() -> str | None:
    """Where this process is to write its record; None: nowhere."""
    place = os.environ.get(RECORD)
    if not place or (os.environ.get(RANKS) and not all(name in os.environ for name in _OF_A_RANK)):
        return None
    return place


def most_mb() -> float | None:
    """The bound that the environment names; None: it names none that can be kept."""
    from graphwidget.record.recording import check_bound

    try:
        found = float(os.environ.get(MOST_MB, ""))
        check_bound(found)
    except ValueError:
        return None
    return found


def begin() -> None:
    """Record in this process from when it imports torch on, if the environment asks for that. Never raises."""
    place = wanted()
    if place is None:
        return
    os.environ[RECORD] = os.path.abspath(place)  # this process or a child may have another working directory by then
    if _in_a_shell():
        return  # there the extension's tracker is followed, which knows cells
    if "torch" in sys.modules:
        _start()
    else:
        _waiting.append(_Finder())
        sys.meta_path.insert(0, _waiting[0])


def take() -> str | None:
    """Where the environment asks for a record. From now on it asks for none, in this process and in its children."""
    place = wanted()
    for finder in _waiting:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
    _waiting.clear()
    os.environ.pop(RECORD, None)
    return place


def hand_on(place: str | None, most: float) -> None:
    """Have processes that this one starts write records, where `place` says. None: ranks, in the working directory."""
    os.environ[RECORD] = os.path.abspath(place or os.getcwd())
    os.environ[MOST_MB] = f"{most:g}"
    os.environ[RUN] = str(os.getpid())
    if place is None:
        os.environ[RANKS] = "1"
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_HOOK, path]))


def follow(tracker: Tracker) -> None:
    """Record what another tracker of this process sees, if the environment asks for a record. Never raises."""
    place = wanted()
    if place is not None and tracker.history.follower is None:
        _quietly(lambda: _followed(tracker, place))


def _followed(tracker: Tracker, place: str) -> None:
    from graphwidget.programs.recording.own_tracker import follow_to_the_end

    follow_to_the_end(tracker, place, most_mb())


def _start() -> None:
    def start() -> None:
        from graphwidget.programs.recording.own_tracker import track_this_process

        place = wanted()
        if place is not None:
            track_this_process(place, most_mb())

    _quietly(start)


def _quietly(begin: Any) -> None:
    """Nothing of ours keeps a program from running."""
    try:
        begin()
    except Exception as error:
        from contextlib import suppress

        with suppress(Exception):
            print(f"graphwidget: no record is written ({type(error).__name__}: {error})", file=sys.__stderr__)


def _in_a_shell() -> bool:
    shell = sys.modules.get("IPython.core.getipython")
    return shell is not None and shell.get_ipython() is not None


class _Finder:
    """Waits for the import of torch: its loader starts the tracker once torch has been imported."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        """How to import torch; None for everything else."""
        if name != "torch":
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """The loader of torch, for one import."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)

    def exec_module(self, module: Any) -> None:
        """Import torch, then start."""
        module.__spec__.loader = module.__loader__ = self._theirs
        self._theirs.exec_module(module)
        _start()
