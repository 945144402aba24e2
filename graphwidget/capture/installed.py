"""Whether a file came with an installed package."""

from __future__ import annotations

__all__ = ["is_installed"]

_FOLDERS = frozenset({"site-packages", "dist-packages"})


def is_installed(path: str) -> bool:
    """Whether a file is in a folder into which packages are installed."""
    return not _FOLDERS.isdisjoint(path.replace("\\", "/").split("/"))
