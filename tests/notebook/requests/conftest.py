"""A page that asks about a graph which one cell has built."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stage import FORWARD, Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    stage.cell(FORWARD)
    yield stage
    stage.tracker.stop()
