"""Edited texts in place of files, in this process alone: whoever reads or imports one of them gets the edited text.

The files stay as they are. Python's cache of compiled code is passed by for them. Another interpreter that the program
starts reads the files themselves.
"""

from __future__ import annotations

import builtins
import io
import linecache
import os
import tokenize
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

__all__ = ["install"]


def install(texts: Mapping[str, bytes]) -> None:
    """From now on the files at these absolute paths have these contents.

    Parameters
    ----------
    texts
        Contents, encoded as the files are.
    """
    if not texts:
        return
    contents = {os.path.realpath(path): content for path, content in texts.items()}
    plain_open, plain_code, plain_data = io.open, SourceFileLoader.get_code, SourceFileLoader.get_data

    def edited(path: object) -> bytes | None:
        if not isinstance(path, (str, os.PathLike)):
            return None
        try:
            return contents.get(os.path.realpath(os.fspath(path)))
        except (TypeError, ValueError):
            return None

    compiled = {os.path.join(os.path.dirname(p), "__pycache__", os.path.basename(p)[:-2]) for p in contents}

    def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        content = edited(file)
        if isinstance(file, (str, os.PathLike)) and str(file).endswith(".pyc"):
            name = os.path.realpath(os.fspath(file))
            if any(name.startswith(one) for one in compiled):  # as pytest keeps it, of the text as it is on the disk
                raise FileNotFoundError(name)
        if content is None or set(mode) & set("wax+"):
            return plain_open(file, mode, *args, **kwargs)
        raw = io.BytesIO(content)
        if "b" in mode:
            return raw
        given = dict(zip(("buffering", "encoding", "errors", "newline"), args), **kwargs)
        options = {name: given[name] for name in ("encoding", "errors", "newline") if name in given}
        return io.TextIOWrapper(raw, **{"encoding": "utf-8", **{k: v for k, v in options.items() if v is not None}})

    def get_data(self: SourceFileLoader, path: str) -> bytes:
        content = edited(path)
        return plain_data(self, path) if content is None else content

    def get_code(self: SourceFileLoader, name: str) -> CodeType | None:
        path = self.get_filename(name)
        content = edited(path)
        if content is None:
            return plain_code(self, name)
        return self.source_to_code(content, path)

    builtins.open = io.open = tokenize._builtin_open = open_  # type: ignore[attr-defined,assignment]
    io.open_code = lambda path: open_(path, "rb")
    SourceFileLoader.get_data = get_data  # type: ignore[method-assign]
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    linecache.clearcache()
