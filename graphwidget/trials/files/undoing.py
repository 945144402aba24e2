"""Undoes the journal of a trial, from its end to its beginning: only what the journal names is touched.

A file gets its contents, mode and times back in its place, so that who has it open keeps it. What was made is removed,
a folder only if it is empty. What was removed is there again.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from graphwidget.trials.files.keeping import JOURNAL, lines_of

__all__ = ["JOB", "after_the_parent", "undo"]

JOB = "job.json"  # what a trial is to run, in its folder
_END = 5.0  # seconds that processes get to be gone
_LOOK = 0.05


def undo(place: Path) -> dict[str, str]:
    """Put back all that a journal in this folder names.

    Returns
    -------
    dict
        What could not be put back -> why.
    """
    failed: dict[str, str] = {}
    folders: dict[str, Mapping[str, Any]] = {}
    for line in reversed(lines_of(place)):
        path = line.get("path", "")
        try:
            if "moved" in line:
                _settle(folders, line["moved"])
                if os.path.isdir(line["moved"]) and not os.path.lexists(path):
                    os.rename(line["moved"], path)
            elif line["was"] in ("folder", "around"):
                if line["was"] == "folder":
                    _folder(path)
                # An older line that only knows the times leaves the mode that a younger one knows.
                folders[path] = {**folders.get(path, {}), **line}
            elif line["was"] == "absent":
                _remove(path)
            elif line["was"] == "link":
                _link(path, line["target"])
            elif line["was"] == "file":
                _file(path, place / line["copy"], line)
        except OSError as error:
            failed[path] = f"{type(error).__name__}: {error.strerror or error}"
    _settle(folders)
    with suppress(OSError):  # undone once more, it would undo what others have done since
        os.replace(place / JOURNAL, place / "undone")
    return failed


def _settle(folders: dict[str, Mapping[str, Any]], top: str = "") -> None:
    """Give folders their modes and times, when all in them is as it was: all of them, or those at and below one."""
    for path in sorted(folders, reverse=True):  # inner ones first
        if not top or path == top or path.startswith(os.path.join(top, "")):
            line = folders.pop(path)
            with suppress(OSError):
                if "mode" in line:
                    os.chmod(path, line["mode"])
                os.utime(path, ns=tuple(line["times"][:2]))


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        with suppress(OSError):  # what else is in it may be somebody else's
            os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _folder(path: str) -> None:
    if not os.path.isdir(path) or os.path.islink(path):
        _remove(path)
        os.makedirs(path)


def _link(path: str, target: str) -> None:
    if not (os.path.islink(path) and os.readlink(path) == target):
        _remove(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)


def _file(path: str, copy: Path, line: Mapping[str, Any]) -> None:
    try:
        about = os.lstat(path)
    except FileNotFoundError:
        about = None
    if about is not None and (about.st_ino, about.st_ctime_ns) == (line["inode"], line["times"][2]):
        return  # nobody has touched it
    if about is not None and not stat.S_ISREG(about.st_mode):
        _remove(path)
        about = None
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if about is not None and not os.access(path, os.W_OK):
        os.chmod(path, stat.S_IMODE(about.st_mode) | stat.S_IWUSR)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    with open(copy, "rb") as kept, open(number, "wb") as file:
        file.truncate(0)
        shutil.copyfileobj(kept, file, 1 << 20)
    if hasattr(os, "chown"):
        with suppress(OSError):  # only the superuser gives files away
            os.chown(path, *line["owner"])
    os.chmod(path, line["mode"])
    os.utime(path, ns=tuple(line["times"][:2]))


def after_the_parent(place: str, group: int) -> None:
    """Undo the journal of a trial whose parent is gone, when all processes of the trial are; remove its folder.

    It runs in a process of its own, which the trial's starts: its last act.
    """
    end = time.monotonic() + _END
    while time.monotonic() < end:
        try:
            os.killpg(group, 9)
        except OSError:
            break
        time.sleep(_LOOK)
    failed = undo(Path(place))
    if failed:
        print(f"graphwidget: not put back: {failed}; copies: {place}", file=sys.stderr)
    elif Path(place).with_name(JOB).exists():  # so it is a trial's folder, whatever this was given
        shutil.rmtree(Path(place).parent, ignore_errors=True)
