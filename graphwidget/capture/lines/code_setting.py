"""The setting for what is the user's own code: in the environment, and in the project's `pyproject.toml`.

``GRAPHWIDGET_CODE=mylib,-other`` counts more than ``code = ["mylib", "-other"]`` under ``[tool.graphwidget]`` in the
nearest `pyproject.toml` at or above the working directory. What a program or a magic asks for counts more than both.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphwidget.capture.lines.own_code import OwnCode, in_and_out

__all__ = ["VARIABLE", "OwnCode", "from_settings"]

VARIABLE = "GRAPHWIDGET_CODE"
_FILE = "pyproject.toml"
_read: dict[tuple[str, int], tuple[list[str], str]] = {}  # file and its time -> names, and what is wrong with it


def from_settings(
    code: Sequence[str] = (), *, folder: Path | None = None, environ: Mapping[str, str] = os.environ
) -> OwnCode:
    """What is the user's own by the settings, and by what was asked for.

    Parameters
    ----------
    code
        Names to add, and with ``-`` in front those to leave out. One that is not there is an error; in a setting it may
        be imported later.
    folder
        Where to look for `pyproject.toml`, there and above. Default: the working directory.

    Raises
    ------
    ValueError
        If there is no file, folder or module of a name in `code`.
    """
    own = OwnCode()
    names, trouble = _of_project(folder)
    own.expect(names, _FILE)
    own.expect([name.strip() for name in environ.get(VARIABLE, "").split(",") if name.strip()], VARIABLE)
    own.trouble = trouble
    own.change(*in_and_out(code))
    return own


def _of_project(folder: Path | None) -> tuple[list[str], str]:
    """The names that the nearest `pyproject.toml` has, and what is wrong with them."""
    try:
        start = (folder or Path.cwd()).absolute()
        path = next((p for one in (start, *start.parents) if (p := one / _FILE).is_file()), None)
        if path is None:
            return [], ""
        key = (str(path), path.stat().st_mtime_ns)
        if key not in _read:
            _read.clear()
            _read[key] = _names(path)
        return _read[key]
    except OSError:
        return [], ""


def _names(path: Path) -> tuple[list[str], str]:
    text = path.read_bytes()
    if b"tool.graphwidget" not in text and b"[tool]" not in text:
        return [], ""
    try:
        toml = _toml()
        found = toml.loads(text.decode("utf-8")).get("tool", {}).get("graphwidget", {}).get("code", [])
    except (ImportError, ValueError, AttributeError) as error:
        return [], f"{path}: its setting `code` was not read: {error}."
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return [], f'{path}: `code` under [tool.graphwidget] is a list of names, as in ["mylib", "-other"].'
    return found, ""


def _toml() -> Any:
    """Python's reader of TOML, from 3.11 on; before that the one that others have installed."""
    return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
