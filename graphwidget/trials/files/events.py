"""What Python tells before files are touched (`sys.addaudithook`), as acts on paths: one reading for all who listen.

An act that does nothing is none: a folder is made that is there (`os.makedirs` with `exist_ok`), something is removed
that is not there.
"""

from __future__ import annotations

import atexit
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

__all__ = ["Act", "Private", "acts", "listen"]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_COMPILED = "torchinductor_"  # begins the name of the folder that PyTorch makes for what it has compiled
_LOCAL = ("/dev/", "/proc/", "/sys/")
# What changes a file or a folder itself, and where in its arguments an open folder is that the path may be relative to.
_CHANGES = {"os.truncate": None, "os.utime": 3, "os.chmod": 2, "os.chown": 3, "os.setxattr": None}
# What makes or removes a name in a folder.
_NAMES = {"os.remove": 1, "os.rmdir": 1, "os.mkdir": 2}
_TWO_NAMES = ("os.rename", "os.link")
_GETPATH = 50  # of `fcntl`, on macOS


class Act(NamedTuple):
    """What is about to be done.

    Attributes
    ----------
    kind
        ``"read"``; ``"write"``: to the file or folder itself, or to its name; ``"move"``: a folder gets the name `to`.
    path
        Absolute, without symbolic links but for the last name, where the act is on the link.
    name
        The path as it was written, for people.
    """

    kind: Literal["read", "write", "move"]
    path: str
    name: str
    to: str = ""


def acts(event: str, args: tuple[Any, ...], *, reading: bool = True) -> Iterator[Act]:
    """The acts on files that an event tells of; those that only read cost time, and can be left out."""
    if event == "open":
        yield from _opened(*args, reading)
    elif event in _CHANGES:
        path = _path(args, 0, _CHANGES[event])
        if path and os.path.exists(path):
            yield Act("write", os.path.realpath(path), path)
    elif event in _NAMES:
        path = _path(args, 0, _NAMES[event])
        there = bool(path) and os.path.lexists(path)
        if path and (there != (event == "os.mkdir")) and os.path.isdir(os.path.dirname(path)):
            yield Act("write", _entry(path), path)
    elif event in _TWO_NAMES:
        one, two = _path(args, 0, 2), _path(args, 1, 3)
        if not one or not two or not os.path.lexists(one):
            return
        if event == "os.rename" and os.path.isdir(one) and not os.path.islink(one):
            yield Act("move", _entry(one), one, _entry(two))
        else:  # what is written to one name of a link later is written to the other, too
            yield Act("write", _entry(one), one)
            yield Act("write", _entry(two), two)
    elif event == "os.symlink":
        path = _path(args, 1, 2)
        if path and not os.path.lexists(path):
            yield Act("write", _entry(path), path)


def _opened(path: object, mode: object, flags: object, reading: bool) -> Iterator[Act]:
    if isinstance(flags, int):
        writes = bool(flags & _WRITES)
        reads = not flags & (os.O_WRONLY | os.O_TRUNC | os.O_APPEND)
    else:
        writes = isinstance(mode, str) and bool(set(mode) & set("wax+"))
        reads = not (isinstance(mode, str) and set(mode) & set("wax"))
    name = _path((path,), 0, None) if writes or reading else ""
    if not name:
        return
    real = os.path.realpath(name)
    if reads and reading:
        yield Act("read", real, name)
    if writes and os.path.isdir(os.path.dirname(real)) and not os.path.isdir(real):
        yield Act("write", real, name)


def _entry(path: str) -> str:
    """The path of a name in its folder."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _path(args: tuple[Any, ...], at: int, folder_at: int | None) -> str:
    """An argument as an absolute path; empty: it is none (the number of an open file, say)."""
    path = args[at] if at < len(args) else None
    if not isinstance(path, (str, bytes, os.PathLike)):
        return ""
    name = os.fsdecode(path)
    folder = args[folder_at] if folder_at is not None and folder_at < len(args) else None
    return os.path.abspath(os.path.join(_of_open_folder(folder), name)) if "\0" not in name else ""


def _of_open_folder(number: object) -> str:
    """The path of a folder that is open under this number; empty if there is none, or it cannot be told."""
    if not isinstance(number, int) or number < 0:
        return ""
    try:
        if sys.platform == "darwin":
            import fcntl

            return os.fsdecode(fcntl.fcntl(number, _GETPATH, bytes(1024)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


class Private:
    """The folders whose files are not the program's: those for temporary files, caches, and where Python itself is."""

    def __init__(self, folder: str, ours: str = "") -> None:
        self.within = os.path.join(os.path.realpath(folder), "")
        self._folders = tuple(
            os.path.join(os.path.realpath(one), "")
            for one in (
                tempfile.gettempdir(),
                os.path.expanduser("~/.cache"),
                os.path.expanduser("~/.config"),
                os.environ.get("IPYTHONDIR") or os.path.expanduser("~/.ipython"),  # made when a shell first starts
                sys.prefix,
                *([ours] if ours else []),
            )
        ) + (os.path.join(os.path.realpath(tempfile.gettempdir()), _COMPILED),)

    def __contains__(self, path: str) -> bool:
        """Whether a path, without symbolic links, is private."""
        if "__pycache__" in path or path.startswith(_LOCAL):
            return True
        around = [one for one in self._folders if f"{path}{os.sep}".startswith(one)]
        # What lies below the folder of the program is its own, even if that is a folder for temporary files.
        own = path.startswith(self.within) and all(self.within.startswith(one) for one in around)
        return bool(around) and not own


def is_special(path: str) -> bool:
    """Whether a path is there, and neither a file nor a folder nor a link to one: a device, a pipe, a socket."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


Listener = Callable[[str, tuple[Any, ...]], None]
_listening: list[Listener] = []  # the one that is told
_hooked: list[bool] = []  # whether Python tells us: a hook cannot be removed
_PREFIXES = frozenset(("open", "os.", "sqlite3", "subprocess", "pty", "socket"))


def listen(listener: Listener | None) -> None:
    """Have one be told of all events that may touch the world, in place of the one before; None: nobody is."""
    if listener is not None and "torch" in sys.modules:
        from graphwidget.torch_internals import tell_of_saved_files  # who only undoes needs no torch

        tell_of_saved_files()
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_hook)
        atexit.register(_listening.clear)
    _listening[:] = [listener] if listener is not None else []


_BEGINNINGS = frozenset(one[:3] for one in _PREFIXES)


# Python calls it until the very end, when the names of this module are gone. Its defaults are not.
def _hook(
    event: str,
    args: tuple[Any, ...],
    beginnings: frozenset[str] = _BEGINNINGS,
    listening: list[Listener] = _listening,
) -> None:
    if event[:3] in beginnings:
        for listener in listening:
            listener(event, args)
