"""Files that torch's compiled code writes: Python tells those who asked for it (`sys.addaudithook`) nothing of them."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

from graphwidget.torch_internals.private import find

__all__ = ["tell_of_saved_files"]

_WRITER = find("torch._C.PyTorchFileWriter", "It cannot see in time which files `torch.save` overwrites.", None)


def tell_of_saved_files() -> None:
    """From now on `torch.save` raises Python's event "open" before it opens a file by its name, as `open` does."""
    if _WRITER is None or torch._C.PyTorchFileWriter is not _WRITER:
        return

    class PyTorchFileWriter(_WRITER):  # type: ignore[valid-type,misc]
        """Tells of its file."""

        def __init__(self, file: Any, *args: Any, **kwargs: Any) -> None:
            if isinstance(file, (str, bytes, os.PathLike)):
                sys.audit("open", os.fspath(file), "w", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            super().__init__(file, *args, **kwargs)

    torch._C.PyTorchFileWriter = PyTorchFileWriter  # type: ignore[assignment,misc]
