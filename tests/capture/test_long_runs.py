"""What the tracker remembers stays bounded: over the iterations of one cell, and over cells."""

from __future__ import annotations

import tracemalloc

import pytest
import torch

from graphwidget.capture import tracker as tracker_module
from graphwidget.capture.calls import log as calls
from graphwidget.capture.lines.ranges import Ranges
from graphwidget.capture.tracker import Tracker
from graphwidget.engine.forecast import forecast

START = "net = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(4)])\nx = torch.randn(2, 4)"
STEPS = "for step in range({n}):\n    loss = net(x).pow(2).mean()\n    loss.backward()\n"


class Cells:
    """Runs cells as a notebook does."""

    def __init__(self, history_bytes: int = 2**18) -> None:
        self.namespace: dict[str, object] = {"torch": torch}
        self.tracker = Tracker(lambda: self.namespace, forecaster=forecast, history_bytes=history_bytes)
        self.tracker.start()
        self.number = 0

    def run(self, source: str) -> None:
        self.number += 1
        name = f"<cell {self.number}>"
        self.tracker.begin_cell(self.number, source, filename=name)
        exec(compile(source, name, "exec"), self.namespace)
        self.tracker.end_cell()

    def sizes(self) -> dict[str, int]:
        log, history = self.tracker.log, self.tracker.history
        return {
            "uids": len(self.tracker.identity),
            "freed": len(log.freed.by_uid),
            "models": len(log._models),
            "held": sum(map(len, log._held.values())),
            "calls": len(history.calls),
            "events": len(history.events),
            "running": len(log.running),
        }


@pytest.fixture
def cells(monkeypatch):
    monkeypatch.setattr(tracker_module, "UIDS", 500)
    made = Cells()
    made.tracker._uids = 500
    yield made
    made.tracker.stop()
    assert list(made.tracker.problems) == []


def test_a_second_thousand_iterations_of_a_cell_takes_no_more_memory(cells) -> None:
    cells.run(START)
    cells.run(STEPS.format(n=1000))
    before = cells.sizes()
    tracemalloc.start()
    cells.run(STEPS.format(n=1000))
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    after = cells.sizes()
    assert all(after[name] <= 1.5 * before[name] + 300 for name in before), (before, after)
    assert grown < 2 * 2**20


def test_cells_that_come_and_go_leave_nothing_but_their_source(cells) -> None:
    cells.run(START)
    for _ in range(60):
        cells.run(STEPS.format(n=3))
    before = cells.sizes()
    for _ in range(120):
        cells.run(STEPS.format(n=3))
    after = cells.sizes()
    assert after["running"] == 0
    assert all(after[name] <= 1.5 * before[name] + 600 for name in before), (before, after)


def test_a_node_that_lives_keeps_its_uid_while_others_are_forgotten(cells) -> None:
    cells.run(START + "\nkept = net(x).sum()")
    uid = {cells.tracker.snapshot().uid[r.node] for r in cells.tracker.snapshot().roots}
    for _ in range(40):
        cells.run(STEPS.format(n=3))
    now = cells.tracker.snapshot()
    assert uid & set(now.uid)


def test_graphs_of_ever_other_shapes_leave_a_bounded_number_of_models(cells, monkeypatch) -> None:
    monkeypatch.setattr(calls, "MAX_MODELS", 8)
    cells.run("x = torch.ones(2, requires_grad=True)")
    cells.run("for n in range(40):\n    y = x\n    for _ in range(n):\n        y = y * 2\n    (y * x).sum().backward()")
    assert len(cells.tracker.log._models) <= 8


def test_calls_looked_at_now_and_then_in_a_long_loop_keep_no_graphs(cells, monkeypatch) -> None:
    monkeypatch.setattr(calls, "FULL_SHARE", 1.0)  # time is no reason not to look
    looks = []
    take = cells.tracker.log._take
    monkeypatch.setattr(cells.tracker.log, "_take", lambda *args, **options: looks.append(1) or take(*args, **options))
    cells.tracker.history.limit = 2**26
    cells.run(START)
    cells.run(STEPS.format(n=5 * calls.SAMPLE))
    found = cells.tracker.calls
    assert len(looks) == calls.DETAILED + 5
    assert [call.graph is not None for call in found] == [True] * calls.DETAILED + [False] * (
        len(found) - calls.DETAILED
    )
    sampled = found[calls.SAMPLE - 1]
    assert sampled.same_as is not None
    assert (sampled.result, sampled.executed_count) == ("ok", found[0].executed_count)
    assert not sampled.assumes


def test_a_hundred_thousand_trivial_passes_leave_nothing(cells) -> None:
    cells.run("x = torch.ones(2, requires_grad=True)")
    state = cells.tracker.provenance.lines.state()
    state.ranges = Ranges(limit=2000, most=8000)
    state.fresh = state.ranges.fresh
    cells.run("for i in range(100_000):\n    y = x * 2\n")
    assert len(state.ranges) <= 20_000
    cells.run("z = 1")
    assert len(state.ranges) <= 4000
