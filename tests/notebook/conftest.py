"""A fresh IPython shell per test, as a notebook's kernel has one."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import graphwidget as gw


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.delattr(builtins, "_", raising=False)  # doctest leaves it, and IPython then sets no `_` of its own
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    yield shell
    if "graphwidget" in shell.extension_manager.loaded:
        shell.extension_manager.unload_extension("graphwidget")
    InteractiveShell.clear_instance()
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)


@pytest.fixture
def run(shell: InteractiveShell) -> Callable[..., list[gw.Finding]]:
    """Run cells one after another; the findings that are left."""
    shell.run_line_magic("load_ext", "graphwidget")

    def cells(*texts: str, ids: str = "abcdefgh") -> list[gw.Finding]:
        for text, cell_id in zip(("import torch", *texts), ids):
            shell.run_cell(text, store_history=True, cell_id=cell_id)
        return gw.explain()

    return cells
