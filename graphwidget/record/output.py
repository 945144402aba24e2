"""The file of a record while it is written: its name, its lock, its frames one behind the other, and its bound.

What is appended is in the file at once, so that it outlives the process, however that ends. When two thirds of the
bound are reached, the file is written anew with what matters most: what lasts, then the newest.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from graphwidget.record.frames import MAGIC
from graphwidget.record.problems import UnwritableRecord

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Entry", "Output", "free_name"]

Key = tuple[str, int]
_MOST_NAMES = 10_000


@dataclass(slots=True)
class Entry:
    """Frames in the file that stay or go together.

    Attributes
    ----------
    key
        Names it; an entry with the key of an earlier one replaces that.
    start, end
        Its bytes.
    uses
        The entries without which it cannot be read.
    lasts
        Whether it is kept before all that is newer and does not last. So is the first entry, the header.
    """

    key: Key
    start: int
    end: int
    uses: tuple[Key, ...]
    lasts: bool


class Output:
    """A new file for a record, or an error why there is none.

    Parameters
    ----------
    path
        Where the user wants it. An earlier record there gets another name (`moved`); if another process is writing
        to it, or if it is no record, this one does (`path`). Nothing is lost.
    most
        Its bound, in bytes.

    Raises
    ------
    UnwritableRecord
        If no file can be made there.
    """

    def __init__(self, path: str | os.PathLike[str], most: int) -> None:
        self.wanted = Path(os.path.realpath(path))  # the program may change its working directory
        self.most = most
        self.moved: Path | None = None
        self.left_out: dict[str, int] = {}  # letter of a kind -> entries that were dropped to stay below the bound
        self._entries: dict[Key, Entry] = {}
        self._end = len(MAGIC)
        try:
            self.path, self._file = self._claimed()
            self._write(self._file, MAGIC, 0)
        except OSError as error:
            raise UnwritableRecord(error.errno, error.strerror or str(error), os.fspath(path)) from None

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._end

    @property
    def room(self) -> int:
        """Bytes of the largest frame that is taken."""
        return self.most // 4

    # ------------------------------------------------------------ its name

    def _claimed(self) -> tuple[Path, int]:
        """A file that is new and ours."""
        path = self.wanted
        for _ in range(_MOST_NAMES):
            file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                raise OSError(errno.EINVAL, "it is no file that can be written anew", os.fspath(path))
            if _locked(file) and _is_at(file, path):
                size = os.fstat(file).st_size
                if not size:
                    return path, file
                if os.pread(file, len(MAGIC), 0) == MAGIC:
                    self.moved = _moved(path)
                    os.close(file)
                    continue
            os.close(file)
            path = free_name(self.wanted)
        raise OSError(errno.EEXIST, "no free name", os.fspath(self.wanted))

    # ------------------------------------------------------------ its frames

    def append(self, key: Key, frame: bytes, *, uses: tuple[Key, ...] = (), lasts: bool = False) -> bool:
        """Append a frame; False if it is too large for the bound, and left out.

        Raises
        ------
        OSError
            If it cannot be written. The frames before it stay.
        """
        if len(frame) > self.room:
            self._leave_out(key)
            return False
        if self._end + len(frame) > self.most * 2 // 3:
            self._make_room()
        start = self._put(frame)
        self._entries.pop(key, None)
        self._entries[key] = Entry(key, start, self._end, uses, lasts)
        return True

    def extend(self, key: Key, frame: bytes) -> bool:
        """Append a frame to the newest entry; False if that has another key."""
        newest = next(reversed(self._entries.values()), None)
        if newest is None or newest.key != key or self._end + len(frame) > self.most * 2 // 3:
            return False
        self._put(frame)
        newest.end = self._end
        return True

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def no_longer_lasts(self, key: Key) -> None:
        """From now on an entry may go when it is old."""
        if key in self._entries:
            self._entries[key].lasts = False

    def _put(self, frame: bytes) -> int:
        start = self._end
        try:
            self._write(self._file, frame, start)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, start)
            raise
        self._end = start + len(frame)
        return start

    @staticmethod
    def _write(file: int, content: bytes, at: int) -> None:
        left = memoryview(content)
        while left:
            done = os.pwrite(file, left, at)
            left, at = left[done:], at + done

    def close(self, *, unlock: bool = True) -> None:
        """Close the file. In a fork the lock is the parent's."""
        if unlock and fcntl is not None:
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)
        with suppress(OSError):
            os.close(self._file)

    # ------------------------------------------------------------ its bound

    def _leave_out(self, key: Key) -> None:
        self.left_out[key[0]] = self.left_out.get(key[0], 0) + 1

    def _make_room(self) -> None:
        """Write the file anew, with at most a third of the bound: what lasts, then the newest."""
        kept = self._chosen(self.most // 3)
        part = self.path.with_name(f"{self.path.name}.part")
        file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            _locked(file)
            self._write(file, MAGIC, 0)
            entries: dict[Key, Entry] = {}
            end = len(MAGIC)
            for entry in self._entries.values():
                if entry.key not in kept:
                    self._leave_out(entry.key)
                    continue
                content = os.pread(self._file, entry.end - entry.start, entry.start)
                self._write(file, content, end)
                entries[entry.key] = Entry(entry.key, end, end + len(content), entry.uses, entry.lasts)
                end += len(content)
            os.replace(part, self.path)
        except BaseException:
            os.close(file)
            with suppress(OSError):
                os.unlink(part)
            raise
        old, self._file, self._entries, self._end = self._file, file, entries, end
        os.close(old)

    def _chosen(self, most: int) -> set[Key]:
        newest = [*reversed(self._entries.values())]
        kept: set[Key] = set()
        used = 0
        for entry in (*newest[-1:], *(one for one in newest if one.lasts), *(one for one in newest if not one.lasts)):
            needed = self._with_all_it_uses(entry, kept)
            size = sum(one.end - one.start for one in needed)
            if used + size <= most:
                kept.update(one.key for one in needed)
                used += size
        return kept

    def _with_all_it_uses(self, entry: Entry, there: Container[Key]) -> list[Entry]:
        found: dict[Key, Entry] = {}
        work = [entry.key]
        while work:
            key = work.pop()
            if key in found or key in there or key not in self._entries:
                continue
            found[key] = self._entries[key]
            work += found[key].uses
        return list(found.values())


def free_name(path: Path) -> Path:
    """A name beside `path` that no file has: ``run-2.gwz``."""
    for number in range(2, _MOST_NAMES):
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
        if not os.path.lexists(found):
            return found
    raise OSError(errno.EEXIST, "no free name", os.fspath(path))


def _moved(path: Path) -> Path:
    """Give an earlier record a free name."""
    while True:
        found = free_name(path)
        try:
            os.link(path, found)
        except FileExistsError:
            continue
        except OSError:  # a file system without links
            os.rename(path, found)
            return found
        os.unlink(path)
        return found


def _locked(file: int) -> bool:
    """Lock a file; False if another process has."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)  # else the file system knows no locks
    return True


def _is_at(file: int, path: Path) -> bool:
    """Whether the open file still has that name."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except OSError:
        return False
