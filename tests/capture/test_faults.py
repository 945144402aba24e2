"""Whatever fails inside the tracker, the user's call does what it does without it."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from graphwidget.capture.calls import log as calls
from graphwidget.capture.tracker import Tracker
from graphwidget.engine.forecast import forecast

SOURCE = """
x = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([x], lr=0.1)
for step in range(5):
    y = x * 1.0
    y[0] = y[1] * 2
    loss = (y * y).sum()
    loss.backward()
    opt.step()
    opt.zero_grad()
grad, = torch.autograd.grad((x * x).sum(), x)
"""
LOG_STEPS = [
    "_describe",
    "_look",
    "_glance",
    "_take",
    "_search",
    "_settle",
    "_recorded",
    "_counted",
    "cell_frames",
    "finished",
    "failed",
]


def broken(*args, **kwargs):
    raise ZeroDivisionError("a fault of ours")


def run(tracker: Tracker, namespace: dict, source: str) -> BaseException | None:
    error = None
    tracker.begin_cell(1, source, filename="<cell 1>")
    try:
        exec(compile(source, "<cell 1>", "exec"), namespace)
    except Exception as raised:
        error = raised
    tracker.end_cell(error)
    return error


@pytest.fixture
def namespace():
    return {"torch": torch}


@pytest.fixture
def tracker(namespace):
    made = Tracker(lambda: namespace, forecaster=forecast)
    made.start()
    yield made
    made.stop()


@pytest.mark.parametrize("step", LOG_STEPS)
def test_a_step_of_the_log_that_raises_reaches_nobody(step, tracker, namespace) -> None:
    plain: dict = {"torch": torch}
    tracker.stop()
    exec(SOURCE, plain)
    tracker.start()
    setattr(tracker.log, step, broken)
    assert run(tracker, namespace, SOURCE) is None
    assert torch.equal(namespace["x"], plain["x"]) and torch.equal(namespace["grad"], plain["grad"])
    failing = run(tracker, namespace, "loss.backward()")
    assert isinstance(failing, RuntimeError) and "second time" in str(failing)


@pytest.mark.parametrize("step", ["_same_step", "_as_usual", "_changes", "_begin_line", "_add"])
def test_a_step_of_the_watch_that_raises_reaches_nobody(step, tracker, namespace) -> None:
    setattr(tracker._writes, step, broken)
    assert run(tracker, namespace, SOURCE) is None
    assert namespace["x"].grad is None


@pytest.mark.parametrize("name", ["survey", "take", "holdings_by_number", "agrees", "executed_nodes"])
def test_a_helper_that_raises_reaches_nobody(name, tracker, namespace, monkeypatch) -> None:
    monkeypatch.setattr(calls, name, broken)
    assert run(tracker, namespace, SOURCE) is None
    assert tracker.problems


@pytest.mark.parametrize("fault", [None, "_after"])
def test_nothing_outlives_a_call_that_raises(fault, tracker, namespace) -> None:
    if fault is not None:
        tracker.log._recorded = broken
    run(
        tracker,
        namespace,
        "base = torch.ones(3, requires_grad=True) * 1.0\nbase[0] = 2.0\nloss = base.exp().sum()\nloss.backward()",
    )
    assert isinstance(run(tracker, namespace, "loss.backward()"), RuntimeError)
    assert tracker.log.running == {}
    assert not calls.ti.in_backward()
    ref = weakref.ref(namespace["base"])
    namespace.pop("base"), namespace.pop("loss")
    torch.ones(1, requires_grad=True).sum().backward()  # the engine lets go of what a failed call had queued
    gc.collect()
    assert ref() is None


def test_an_interrupt_inside_the_engine_ends_the_call_and_tracking_goes_on(tracker, namespace) -> None:
    source = (
        "x = torch.ones(2, requires_grad=True)\nx.register_hook(stop)\n"
        "try:\n    (x * 2).sum().backward()\nexcept KeyboardInterrupt:\n    stopped = True\n"
        "z = torch.ones(1, requires_grad=True)\n(z * 3).sum().backward()"
    )

    def stop(grad):
        raise KeyboardInterrupt

    namespace["stop"] = stop
    assert run(tracker, namespace, source) is None
    assert namespace["stopped"] is True
    assert [call.result for call in tracker.calls] == ["raised", "ok"]


def test_a_step_that_raises_leaves_the_lines_after_it_unknown_at_worst(tracker, namespace) -> None:
    source = (
        "x = torch.ones(2, requires_grad=True)\nopt = torch.optim.SGD([x], lr=0.1)\n(x * 2).sum().backward()\n"
        "opt.param_groups[0]['lr'] = 'no number'\ntry:\n    opt.step()\nexcept Exception:\n    caught = True\n"
        "y = x * 3\nz = y * y"
    )
    assert run(tracker, namespace, source) is None
    assert namespace["caught"] is True
    now = tracker.snapshot()
    for index in range(len(now)):
        place = now.place_of(index)
        assert place is None or place.line in (9, 10), place


def test_after_a_step_that_raises_lines_have_places_again_from_the_next_module_on(tracker, namespace) -> None:
    source = (
        "net = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "net(torch.ones(1, 2)).sum().backward()\nopt.param_groups[0]['lr'] = 'no number'\ntry:\n    opt.step()\n"
        "except Exception:\n    caught = True\ny = net(torch.ones(1, 2))\nz = y * y"
    )
    assert run(tracker, namespace, source) is None
    assert namespace["caught"] is True
    now = tracker.snapshot()
    places = {now.name_of(i): now.place_of(i) for i in range(len(now))}
    assert places["AddmmBackward0"].line == 9 and places["MulBackward0"].line == 10
