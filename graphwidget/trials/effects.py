"""What a program does to the world around it, as far as that can be seen: it would happen again in each trial.

Python reports what opens files, connects to other machines or starts other programs (`sys.addaudithook`). What compiled
code writes is seen where it is a file in the working directory. What is written to the folder for temporary files, to
caches, or to the folder in which IPython keeps its profiles, does not count.

Files can be put back (`graphwidget.trials.files`). What else was done cannot.
"""

from __future__ import annotations

import gc
import io
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from graphwidget.trials.files.events import Private, acts, is_special, listen
from graphwidget.trials.files.left import Left, files_below, named, stamp_of

__all__ = ["Done", "Effects", "watch"]

_MOST = 5000  # files, or programs, that are remembered
_MOST_NAMED = 2
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")
_CONNECTS = ("socket.connect", "socket.sendto", "socket.bind")


@dataclass(frozen=True)
class Done:
    """What a program did.

    Attributes
    ----------
    said
        As a clause; empty if nothing was seen.
    only_files
        Whether it did nothing but write files, so that all can be put back.
    left
        What it left in files.
    """

    said: str = ""
    only_files: bool = True
    left: Left = field(default_factory=Left)


class Effects:
    """What was seen since `watch`; `end` says it."""

    def __init__(self, folder: str, ours: str = "") -> None:
        self._calls: Callable[[], int] = lambda: 0
        self._folder = folder
        self._private = Private(folder, ours)
        self._since = _now_of_files()
        self._files: dict[str, str] = {}  # path -> as it was written
        self._early: set[str] = set()  # of these, those that were not written since the first call
        self._read: set[str] = set()  # of these, those that were read since they were written
        self._started: dict[str, None] = {}
        self._others: dict[str, None] = {}
        self._done: Done | None = None

    def follow(self, tracker: Any, _journal: object = None) -> None:
        """Tell what was written before the first backward call from what was written since."""
        self._calls = lambda: tracker.log.count

    def end(self) -> Done:
        """What the program did until now. From now on nothing more is seen."""
        if self._done is None:
            listen(None)
            _flush()
            self._done = self._all()
        return self._done

    def _all(self) -> Done:
        changed = [path for path, stamp in files_below(self._folder).items() if stamp[1] > self._since]
        compiled = tuple(path for path in changed if path not in self._files)
        parts = [f"writes files ({self._named([*self._files.values(), *compiled])})"] if self._files else []
        if self._started:
            names = ", ".join(filter(None, list(self._started)[:_MOST_NAMED]))
            parts.append(f"starts other programs{f' ({names})' if names else ''}")
        parts += list(self._others)
        said = f"the program {' and '.join(parts)}" if parts else ""
        if compiled and not parts:
            said = f"files changed while the program ran ({self._named(list(compiled))})"
        there = {path: stamp for path in (*self._files, *compiled) if (stamp := stamp_of(path)) is not None}
        known = self._early & self._read
        left = Left(self._folder, there, compiled, tuple(path for path in there if path not in known))
        return Done(said, not (self._started or self._others), left)

    def see(self, event: str, args: tuple[Any, ...]) -> None:
        """An event of Python's. It must be quick, and raise nothing."""
        try:
            self._see(event, args)
        except Exception:  # an event with other arguments than expected; an error would reach the program
            self._others["does what cannot be told"] = None

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _STARTS:
            if len(self._started) < _MOST:
                self._started[_name_of(args)] = None
        elif event in _CONNECTS:
            if not _is_on_this_machine(args):
                self._others["talks to other machines"] = None
        elif event == "sqlite3.connect":
            path = os.fsdecode(args[0])
            if path not in ("", ":memory:") and os.path.realpath(path) not in self._private:
                self._others[f"opens a database ({self._named([os.path.abspath(path)])})"] = None
        else:
            for act in acts(event, args, reading=bool(self._files)):
                if act.kind == "read":
                    if act.path in self._files:
                        self._read.add(act.path)
                elif act.kind == "move":
                    self._moved(act.path, act.to)
                else:
                    self._wrote(act.path, act.name)

    def _wrote(self, path: str, name: str) -> None:
        if path in self._private:
            return
        if is_special(path):
            self._others[f"writes to a device or a pipe ({self._named([name])})"] = None
        elif path in self._files or len(self._files) < _MOST:
            if self._calls():
                self._early.discard(path)
            elif path not in self._files:
                self._early.add(path)
            self._files.setdefault(path, name)
            self._read.discard(path)
        else:
            self._others["writes very many files"] = None

    def _moved(self, old: str, new: str) -> None:
        """A folder gets another name, and so does all that lies in it."""
        self._wrote(new, new)
        for folder, _folders, files in os.walk(old):
            for one in files[:_MOST]:
                moved = os.path.join(new, os.path.relpath(os.path.join(folder, one), old))
                self._wrote(moved, moved)

    def _named(self, paths: list[str]) -> str:
        return named(paths, self._folder, "")


def watch(folder: str, ours: str = "") -> Effects:
    """Begin to see what the program in this process does, but for what is below a folder of `ours`.

    Only the newest `Effects` sees anything.
    """
    effects = Effects(folder, ours)
    listen(effects.see)
    return effects


def _flush() -> None:
    """Bring to the disk what the program has written to files that are open still: its process ends only later."""
    for one in gc.get_objects():
        if issubclass(type(one), (io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)):
            with suppress(Exception):
                one.flush()


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
