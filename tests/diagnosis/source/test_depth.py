"""Texts with deep expressions are explained, also for a program that is deep in a recursion of its own."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.engine.forecast import forecast

LOOP = "for i in range(3):\n    h = torch.tanh(w + h + ({many}))\n    h.sum().backward()\n"


@pytest.mark.parametrize(("terms", "levels"), [(400, 0), (100, 700)])
def test_a_sum_of_many_terms_is_explained(terms: int, levels: int) -> None:
    source = LOOP.format(many=" + ".join(["0.0"] * terms))
    limit = sys.getrecursionlimit()
    space: dict[str, Any] = {"torch": torch, "w": torch.ones(3, requires_grad=True), "h": torch.zeros(3)}
    tracker = Tracker(lambda: space, forecaster=forecast, diagnose=diagnose)
    tracker.start()

    def down(more: int) -> tuple[str, ...]:
        return down(more - 1) if more else tuple(finding.kind for finding in tracker.findings())

    try:
        tracker.begin_cell(1, source, filename="<deep>")
        with pytest.raises(RuntimeError, match="second time"):
            exec(compile(source, "<deep>", "exec"), space)
        tracker.end_cell()
        assert down(levels) == ("second_backward",)
    finally:
        tracker.stop()
    assert sys.getrecursionlimit() == limit
