"""What a program does to the world around it, as far as that can be seen: it would happen again in each trial.

Python reports what opens files, connects to other machines or starts other programs (`sys.addaudithook`). What compiled
code writes is seen where it is a file in the working directory. What is written to the folder for temporary files, to
caches, or to the folder in which IPython keeps its profiles, does not count.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from typing import Any

__all__ = ["Effects", "watch"]

_MOST_ENTRIES = 5000  # of the working directory, looked at for new files
_MOST_NAMED = 2
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")
_CONNECTS = ("socket.connect", "socket.sendto", "socket.bind")
# What changes files, and where in its arguments an open folder is that the path may be relative to.
_CHANGES = {
    "os.remove": 1,
    "os.rmdir": 1,
    "os.mkdir": 2,
    "os.rename": 2,
    "os.link": 2,
    "os.truncate": None,
    "shutil.rmtree": 1,
    "shutil.move": None,
}
_COMPILED = "torchinductor_"  # begins the name of the folder that PyTorch makes for what it has compiled
_LOCAL = ("/dev/", "/proc/", "/sys/")


class Effects:
    """What was seen since `watch`; `end` says it."""

    def __init__(self, folder: str, ours: str = "") -> None:
        self._folder = folder
        self._within = os.path.join(os.path.realpath(folder), "")
        self._since = _now_of_files()
        self._files: dict[str, None] = {}
        self._started: dict[str, None] = {}
        self._others: dict[str, None] = {}
        self._private = tuple(
            os.path.realpath(one) + os.sep
            for one in (
                tempfile.gettempdir(),
                os.path.expanduser("~/.cache"),
                os.path.expanduser("~/.config"),
                os.environ.get("IPYTHONDIR") or os.path.expanduser("~/.ipython"),  # made when a shell first starts
                sys.prefix,
            )
        ) + (os.path.join(os.path.realpath(tempfile.gettempdir()), _COMPILED),)
        if ours:
            self._private += (os.path.join(os.path.realpath(ours), ""),)

    def end(self) -> str:
        """What the program did until now, as a clause; empty if nothing was seen. From now on nothing more is seen."""
        if _watched == [self]:
            _watched.clear()
        parts = [f"writes files ({self._named(list(self._files))})"] if self._files else []
        if self._started:
            names = ", ".join(filter(None, list(self._started)[:_MOST_NAMED]))
            parts.append(f"starts other programs{f' ({names})' if names else ''}")
        parts += list(self._others)
        if parts:
            return f"the program {' and '.join(parts)}"
        changed = self._changed_files()
        return f"files changed while the program ran ({self._named(changed)})" if changed else ""

    def see(self, event: str, args: tuple[Any, ...]) -> None:
        """An event of Python's. It must be quick, and raise nothing."""
        if event == "open":
            path, mode, flags = args
            writes = flags & _WRITES if isinstance(flags, int) else isinstance(mode, str) and set(mode) & set("wax+")
            if writes:
                self._wrote(path)
        elif event in _CHANGES:
            folder = _CHANGES[event]
            self._wrote(args[0], args[folder] if folder is not None and folder < len(args) else None)
        elif event == "sqlite3.connect":
            self._wrote(args[0])
        elif event in _STARTS:
            if len(self._started) < _MOST_ENTRIES:
                self._started[_name_of(args)] = None
        elif event in _CONNECTS and not _is_on_this_machine(args):
            self._others["talks to other machines"] = None

    def _wrote(self, path: object, open_folder: object = None) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        name = os.path.abspath(os.path.join(_path_of(open_folder), os.fsdecode(path)))
        if "__pycache__" not in name and not name.startswith(_LOCAL) and len(self._files) < _MOST_ENTRIES:
            real = os.path.realpath(name)
            within = self._within
            private = [one for one in self._private if f"{real}{os.sep}".startswith(one)]
            # What lies below the folder of the program is its own, even if that is a folder for temporary files.
            own = real.startswith(within) and all(within.startswith(one) for one in private)
            if own or not private:
                self._files[name] = None

    def _changed_files(self) -> list[str]:
        """Files below the working directory that are newer than the beginning, but for what we print to.

        Not where the folder for temporary files is in it: every program writes there.
        """
        if os.path.join(os.path.realpath(tempfile.gettempdir()), "").startswith(self._within):
            return []
        ours = {(one.st_dev, one.st_ino) for one in map(os.fstat, (1, 2))}
        found: list[str] = []
        folders, seen = [self._folder], 0
        while folders and seen < _MOST_ENTRIES:
            try:
                entries = list(os.scandir(folders.pop(0)))
            except OSError:
                continue
            seen += len(entries)
            for entry in entries:
                try:
                    if entry.name in ("__pycache__", ".git", "node_modules") or entry.is_symlink():
                        continue
                    if entry.is_dir():
                        folders.append(entry.path)
                    elif (about := entry.stat()).st_mtime_ns > self._since and (about.st_dev, about.st_ino) not in ours:
                        found.append(os.path.abspath(entry.path))
                except OSError:
                    continue
        return found

    def _named(self, paths: list[str]) -> str:
        more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
        return ", ".join(map(self._shown, paths[:_MOST_NAMED])) + more

    def _shown(self, path: str) -> str:
        return os.path.relpath(path, self._folder) if path.startswith(self._folder + os.sep) else path


_watched: list[Effects] = []  # the one that sees
_hooked: list[bool] = []  # whether Python reports to us: a hook cannot be removed


def watch(folder: str, ours: str = "") -> Effects:
    """Begin to see what the program in this process does, but for what is below a folder of `ours`.

    Only the newest `Effects` sees anything.
    """
    effects = Effects(folder, ours)
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_hook)
        atexit.register(_watched.clear)
    _watched[:] = [effects]
    return effects


_PREFIXES = frozenset(event[:3] for event in ("open", "sqlite3.connect", *_STARTS, *_CONNECTS, *_CHANGES))


# Python calls it until the very end, when the names of this module are gone. Its defaults are not.
def _hook(
    event: str,
    args: tuple[Any, ...],
    prefixes: frozenset[str] = _PREFIXES,
    watched: list[Effects] = _watched,
) -> None:
    if event[:3] in prefixes:
        for effects in watched:
            try:
                effects.see(event, args)
            except Exception:  # an event with other arguments than expected; an error would reach the program
                effects._others["does what cannot be told"] = None


def _path_of(open_folder: object) -> str:
    """The path of a folder that is open under this number; empty if there is none, or it cannot be told."""
    if not isinstance(open_folder, int) or open_folder < 0:
        return ""
    try:
        return os.readlink(f"/proc/self/fd/{open_folder}")
    except OSError:
        return ""


def _name_of(args: tuple[Any, ...]) -> str:
    """The name of a program that is started: of ``subprocess.Popen`` and its like, which have its path first."""
    path = args[0] if args else None
    if not isinstance(path, (str, bytes)):
        return ""
    words = os.fsdecode(path).split()  # `os.system` has the whole line
    return os.path.basename(words[0]) if words else ""


def _is_on_this_machine(args: tuple[Any, ...]) -> bool:
    address = args[1] if len(args) > 1 else None
    if not isinstance(address, tuple):
        return True  # a socket of the system's own, by its path
    return str(address[0]) in ("", "localhost", "::1") or str(address[0]).startswith("127.")


def _now_of_files() -> int:
    """The present time as the file system gives it to files, whose clock may be coarser."""
    try:
        with tempfile.NamedTemporaryFile() as file:
            return os.stat(file.name).st_mtime_ns
    except OSError:
        return 0
