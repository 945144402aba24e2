"""How the process looks to the program that runs in it: as if Python had been called with the program alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["pose"]


def pose(argv: Sequence[str], folder: str) -> None:
    """Set `sys.argv`, and `folder` as where Python looks first for modules."""
    if not getattr(sys.flags, "safe_path", False):
        if _first_path_is_ours():
            del sys.path[0]
        sys.path.insert(0, folder)
    sys.argv = list(argv)


def _first_path_is_ours() -> bool:
    """Whether Python put where it found `graphwidget` itself, or the working directory for ``-m``, first."""
    if not sys.argv or not sys.path:
        return False
    ours = Path(sys.argv[0])
    if ours.name == "__main__.py":
        return ours.parent.name == "graphwidget" and sys.path[0] == os.getcwd()
    return ours.stem == "graphwidget" and sys.path[0] == str(ours.resolve().parent)
