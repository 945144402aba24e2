"""Whether a file came with an installed package."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import lru_cache

__all__ = ["is_installed"]

_FOLDERS = frozenset({"site-packages", "dist-packages"})


def is_installed(path: str) -> bool:
    """Whether a file is in a folder into which packages are installed, or of a package that is recorded beside it.

    The latter is what ``pip install --target FOLDER`` leaves in a folder of any name. An editable install is recorded
    elsewhere than where its code is.
    """
    if not _FOLDERS.isdisjoint(path.replace("\\", "/").split("/")):
        return True
    return _is_recorded(path, tuple(sys.path))


@lru_cache(maxsize=4096)
def _is_recorded(path: str, folders: tuple[str, ...]) -> bool:
    path = os.path.realpath(path)
    for folder in dict.fromkeys(os.path.realpath(one) for one in folders):
        if path.startswith(folder + os.sep):
            first = path[len(folder) + 1 :].split(os.sep, 1)[0]
            if first in _recorded(folder):
                return True
    return False


@lru_cache(maxsize=256)
def _recorded(folder: str) -> frozenset[str]:
    """The files and folders in a folder that distributions recorded beside them have brought.

    Source: the `RECORD` of a ``.dist-info`` folder, https://packaging.python.org/specifications/recording-installed-packages/
    """
    found = set[str]()
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.endswith(".dist-info"):
                with suppress(OSError), open(os.path.join(folder, name, "RECORD"), encoding="utf-8") as lines:
                    found.update(line.lstrip('"').split("/", 1)[0].split(",", 1)[0] for line in lines)
    return frozenset(found - {"..", "__pycache__", "bin"})
