"""What holds for every test."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """What is here before the first test belongs to no test's program.

    To look through it for tensors and optimizers, as the tracker does, took most of the time of many tests.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_of_ours_stays() -> Iterator[None]:
    """No test leaves a tracker running: its hooks would be part of every test that comes later."""
    yield
    if "cells" in sys.modules:
        sys.modules["cells"].stop_all()
    modules = sys.modules.get("torch.nn.modules.module")
    if modules is not None:
        left = {**modules._global_forward_hooks, **modules._global_forward_pre_hooks}
        assert not [hook for hook in left.values() if getattr(hook, "__module__", "").startswith("graphwidget")]
