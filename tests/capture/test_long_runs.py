"""The memory of the tracker stays bounded: over the iterations of one cell, and over a long notebook."""

from __future__ import annotations

import tracemalloc

import pytest
from cells import Notebook

from graphwidget.capture.calls.counting.policy import CallPolicy
from graphwidget.capture.lines.ranges import Ranges
from graphwidget.capture.policy import TrackerPolicy
from graphwidget.engine.forecast import forecast

START = "net = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(4)])\nx = torch.randn(2, 4)"
STEPS = "for step in range({n}):\n    loss = net(x).pow(2).mean()\n    loss.backward()\n"


def sizes(notebook: Notebook) -> dict[str, int]:
    """Return the number of remembered items by kind."""
    log, history = notebook.tracker.log, notebook.tracker.history
    return {
        "uids": len(notebook.tracker.identity),
        "freed": len(log.freed.by_uid),
        "models": len(log.recognition.models),
        "held": len(log.carriers),
        "calls": len(history.calls),
        "events": len(history.events),
        "running": len(log.running),
    }


@pytest.fixture
def notebook():
    made = Notebook(history_bytes=2**18, policy=TrackerPolicy(max_uids=500))
    yield made
    made.close()
    assert made.errors == []


def test_a_second_thousand_iterations_of_a_cell_takes_no_more_memory(notebook) -> None:
    notebook.run(START)
    notebook.run(STEPS.format(n=1000))
    before = sizes(notebook)
    tracemalloc.start()
    notebook.run(STEPS.format(n=1000))
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    after = sizes(notebook)
    assert all(after[name] <= 1.5 * before[name] + 300 for name in before), (before, after)
    assert grown < 2 * 2**20


def test_cells_that_come_and_go_leave_nothing_but_their_source(notebook) -> None:
    notebook.run(START)
    for _ in range(60):
        notebook.run(STEPS.format(n=3))
    before = sizes(notebook)
    for _ in range(120):
        notebook.run(STEPS.format(n=3))
    after = sizes(notebook)
    assert after["running"] == 0
    assert all(after[name] <= 1.5 * before[name] + 600 for name in before), (before, after)


def test_a_node_that_lives_keeps_its_uid_while_others_are_forgotten(notebook) -> None:
    notebook.run(START + "\nkept = net(x).sum()")
    uid = {notebook.tracker.snapshot().uid[r.node] for r in notebook.tracker.snapshot().roots}
    for _ in range(40):
        notebook.run(STEPS.format(n=3))
    now = notebook.tracker.snapshot()
    assert uid & set(now.uid)


def test_graphs_of_ever_other_shapes_leave_a_bounded_number_of_models() -> None:
    notebook = Notebook(calls=CallPolicy(max_models=8))
    notebook.run("x = torch.ones(2, requires_grad=True)")
    notebook.run(
        "for n in range(40):\n    y = x\n    for _ in range(n):\n        y = y * 2\n    (y * x).sum().backward()"
    )
    assert sizes(notebook)["models"] <= 8
    notebook.close()


def test_calls_read_in_full_now_and_then_in_a_long_loop_keep_no_graphs() -> None:
    policy = CallPolicy(full_share=1.0)  # reading may take all the time
    foreseen = []
    notebook = Notebook(calls=policy, forecaster=lambda *args, **how: foreseen.append(1) or forecast(*args, **how))
    notebook.run(START)
    notebook.run(STEPS.format(n=5 * policy.every))
    found = notebook.calls
    assert len(foreseen) == policy.in_full + 5
    kept = [call.graph is not None for call in found]
    assert kept == [True] * policy.in_full + [False] * (len(found) - policy.in_full)
    sampled = found[policy.every - 1]
    assert sampled.same_as is not None
    assert (sampled.result, sampled.executed_count) == ("ok", found[0].executed_count)
    assert not sampled.assumes
    notebook.close()


def test_a_hundred_thousand_trivial_passes_leave_nothing(notebook) -> None:
    notebook.run("x = torch.ones(2, requires_grad=True)")
    state = notebook.tracker.provenance.lines.state()
    state.ranges = Ranges(limit=2000, most=8000)
    state.fresh = state.ranges.fresh
    notebook.run("for i in range(100_000):\n    y = x * 2\n")
    assert len(state.ranges) <= 20_000
    notebook.run("z = 1")
    assert len(state.ranges) <= 4000
