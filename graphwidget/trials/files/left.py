"""What a program left in files when it ended, and whether it can be put back after a trial of the program."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graphwidget.model import bytes_text

__all__ = ["MOST_BYTES", "Left", "Stamp", "files_below", "named", "stamp_of"]

MOST_BYTES = 512_000_000  # that are copied, so that they can be put back
_MOST_ENTRIES = 5000  # of a folder and those below it, that are looked at
_MOST_NAMED = 2

Stamp = tuple[int, int]  # the size of a file, and when it was changed


@dataclass(frozen=True)
class Left:
    """What a program left in files.

    Attributes
    ----------
    folder
        In which it ran.
    files
        The files that it wrote and that are there, by their paths without symbolic links, as they were at its end.
    compiled
        Those of them that compiled code wrote, of which nobody tells before.
    begins_from
        Those from which the program, when it runs again, would begin otherwise than it did: not what it made before
        its first backward call and has read since, such as data that it keeps for later.
    """

    folder: str = "."
    files: Mapping[str, Stamp] = field(default_factory=dict)
    compiled: tuple[str, ...] = ()
    begins_from: tuple[str, ...] = ()

    def too_much(self) -> str:
        """Why it is too much to be put back, as the end of a sentence about the files; empty: it is not."""
        size = sum(stamp[0] for stamp in self.files.values())
        if size > MOST_BYTES:
            return f"they have {bytes_text(size)}, and of more than {bytes_text(MOST_BYTES)} no copy is made"
        if shutil.disk_usage(tempfile.gettempdir()).free < 2 * size:
            return f"there is no room for two copies of them ({bytes_text(2 * size)}) in the folder for temporary files"
        return ""

    def changed(self) -> str:
        """A file that is not as the program left it, for people; empty: all are."""
        other = next((path for path, stamp in self.files.items() if stamp_of(path) != stamp), "")
        return named([other], self.folder) if other else ""


def stamp_of(path: str) -> Stamp | None:
    """The size of a file and when it was changed; None: there is no such file."""
    try:
        about = os.lstat(path)
    except OSError:
        return None
    return (about.st_size, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else None


def files_below(folder: str) -> dict[str, Stamp]:
    """Files in a folder and below it, as far as they are not too many, but for what we print to.

    None where the folder for temporary files is in it: every program writes there.
    """
    within = os.path.realpath(folder)
    if os.path.join(os.path.realpath(tempfile.gettempdir()), "").startswith(os.path.join(within, "")):
        return {}
    ours = set()
    for number in (1, 2):
        try:
            about = os.fstat(number)
        except OSError:  # it is closed
            continue
        ours.add((about.st_dev, about.st_ino))
    return {path: stamp for path, stamp, which in _walk(within) if which not in ours}


def _walk(folder: str) -> Iterator[tuple[str, Stamp, tuple[int, int]]]:
    folders, seen = [folder], 0
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
                elif entry.is_file():
                    about = entry.stat()
                    yield entry.path, (about.st_size, about.st_mtime_ns), (about.st_dev, about.st_ino)
            except OSError:
                continue


def named(paths: Iterable[str], folder: str, mark: str = "`") -> str:
    """The first of some paths, from a folder on, and how many more there are."""
    all_of: Sequence[str] = list(paths)
    more = f" and {len(all_of) - _MOST_NAMED} more" if len(all_of) > _MOST_NAMED else ""
    return ", ".join(f"{mark}{_shown(path, folder)}{mark}" for path in all_of[:_MOST_NAMED]) + more


def _shown(path: str, folder: str) -> str:
    for around in (folder, os.path.realpath(folder)):
        if path.startswith(os.path.join(around, "")):
            return os.path.relpath(path, around)
    return path
