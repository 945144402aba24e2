"""In a trial's process: what is there is copied before the program touches it, and noted in a journal.

The journal is a file of JSON lines, each written before the act: ``path`` and ``was``, which is "absent", "file" (with
its ``copy``), "link" (with its ``target``), "folder" or "around" (only its times); or ``moved``, the new name of a
folder. Each path is noted once, as it was at first. Forks of the program, such as workers that load data, write to the
same journal. "read" is a file of the run before, from which this one begins; "not kept" is what cannot be undone.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from graphwidget.model import bytes_text
from graphwidget.trials.files.events import Act, Private, acts, listen
from graphwidget.trials.files.left import MOST_BYTES

__all__ = ["JOURNAL", "STOPPED", "Keeper", "lines_of"]

JOURNAL = "journal"
STOPPED = "stopped"
_ROOM = 64_000_000  # bytes that stay free for others


class CannotKeep(Exception):
    """Something that cannot be put back; the message says why, behind "it"."""


class Keeper:
    """Keeps what a program is about to change.

    Parameters
    ----------
    place
        A folder of its own, for the journal and the copies.
    folder, ours
        That of the program, and one in which nothing is kept.
    begins_from
        Files that the run before had written: it is noted if the program reads one that it has not written itself.
    must
        Whether the program ends where something cannot be kept. Otherwise that is only noted.
    end
        Ends it, with its forks.
    """

    def __init__(
        self,
        place: Path,
        folder: str,
        ours: str,
        begins_from: Collection[str] = (),
        *,
        must: bool = True,
        end: Callable[[], object] = lambda: os._exit(1),
    ) -> None:
        self._place = place
        self._private = Private(folder, ours)
        self._begins_from = set(begins_from)
        self._must, self._end = must, end
        self._known: set[str] = set()
        self._folders: set[str] = set()  # whose times are noted
        self._bytes = 0
        self._copies = 0
        self._lock = threading.RLock()  # who has it is in here

    def listen(self) -> None:
        """Keep from now on what this process, and its forks, are about to change."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        listen(self.see)

    def _forked(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it

    def see(self, event: str, args: tuple[Any, ...]) -> None:
        """An event of Python's. It raises nothing."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            return  # what this does itself
        try:
            for act in acts(event, args, reading=bool(self._begins_from)):
                self._keep(act)
        except CannotKeep as why:
            self._stop(str(why))
        except Exception as error:
            self._stop(f"could not be prevented from changing files ({type(error).__name__}: {error})")

    def _keep(self, act: Act) -> None:
        if act.kind == "read" and (act.path not in self._begins_from or act.path in self._known):
            return
        with self._lock:
            if act.kind == "read":
                self._begins_from.discard(act.path)
                self._note(path=act.path, was="read")
            elif act.kind == "move":
                self._moved(act.path, act.to)
            elif act.path not in self._private:
                self.touch(act.path)

    def _moved(self, old: str, new: str) -> None:
        if old in self._private and new in self._private:
            return
        self.touch(new)
        self._times_of(os.path.dirname(old))
        self._note(path=old, moved=new)
        # What is touched below either name from now on is not what was noted.
        for folder in (old, new):
            below = os.path.join(folder, "")
            self._known -= {path for path in self._known if path == folder or path.startswith(below)}
            self._folders -= {path for path in self._folders if path == folder or path.startswith(below)}

    def touch(self, path: str) -> None:
        """Keep what is at a path, if that has not been done.

        Raises
        ------
        CannotKeep
            If it is too large, or nothing that can be copied.
        """
        if path in self._known:
            return
        self._times_of(os.path.dirname(path))
        self._known.add(path)
        try:
            about = os.lstat(path)
        except FileNotFoundError:
            self._note(path=path, was="absent")
        else:
            mode = stat.S_IMODE(about.st_mode)
            if stat.S_ISLNK(about.st_mode):
                self._note(path=path, was="link", target=os.readlink(path))
            elif stat.S_ISDIR(about.st_mode):
                self._note(path=path, was="folder", mode=mode, times=[about.st_atime_ns, about.st_mtime_ns])
            elif stat.S_ISREG(about.st_mode):
                copy = self._copy(path, about.st_size)
                times = [about.st_atime_ns, about.st_mtime_ns, about.st_ctime_ns]
                owner = [about.st_uid, about.st_gid]
                self._note(path=path, was="file", copy=copy, mode=mode, times=times, inode=about.st_ino, owner=owner)
            else:
                raise CannotKeep(f"would write to a device or a pipe (`{path}`)")

    def _copy(self, path: str, size: int) -> str:
        if self._bytes + size > MOST_BYTES:
            raise CannotKeep(f"would overwrite more than {bytes_text(MOST_BYTES)} (`{path}`)")
        if shutil.disk_usage(self._place).free < size + _ROOM:
            raise CannotKeep(f"would overwrite `{path}`, and there is no room for a copy of it")
        self._bytes += size
        self._copies += 1
        name = f"{os.getpid()}-{self._copies}"
        try:
            shutil.copyfile(path, self._place / name)
        except OSError as error:
            raise CannotKeep(f"would overwrite `{path}`, which cannot be copied ({error.strerror or error})") from None
        return name

    def _times_of(self, folder: str) -> None:
        """Note when a folder was changed: that is so when a name in it is made or removed."""
        if folder in self._folders or folder in self._known:
            return
        self._folders.add(folder)
        try:
            about = os.stat(folder)
        except OSError:
            return
        self._note(path=folder, was="around", times=[about.st_atime_ns, about.st_mtime_ns])

    def _note(self, **fields: object) -> None:
        """Write a line, whole: others write to the same file."""
        line = f"{json.dumps(fields)}\n".encode()
        number = os.open(self._place / JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(number, line)
        finally:
            os.close(number)

    def _stop(self, why: str) -> None:
        """End this process and its forks before it does what cannot be undone."""
        with self._lock:
            if not self._must:
                self._note(was="not kept", why=why)
                return
            (self._place / STOPPED).write_text(why, encoding="utf-8")
        self._end()


def lines_of(place: Path) -> list[dict[str, Any]]:
    """The lines of a journal; a last one that is not whole was no act yet."""
    try:
        text = (place / JOURNAL).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
