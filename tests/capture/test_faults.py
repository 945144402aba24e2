"""Whatever fails inside the tracker, the user's call behaves as without a tracker."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from cells import Notebook

from graphwidget import torch_internals as ti

SOURCE = """
x = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([x], lr=0.1)
for step in range(20):
    y = x * 1.0
    y[0] = y[1] * 2
    loss = (y * y).sum()
    loss.backward()
    opt.step()
    opt.zero_grad()
grad, = torch.autograd.grad((x * x).sum(), x)
"""


class Broken:
    """A collaborator that fails at everything: reading or writing an attribute, calling, indexing."""

    def _fails(self, *args: object, **kwargs: object) -> Any:
        raise ZeroDivisionError("a fault of ours")

    __getattr__ = __setattr__ = __call__ = __len__ = __bool__ = __iter__ = __getitem__ = __contains__ = _fails


class Faulty(Notebook):
    """A notebook whose tracker's collaborators can be replaced by ones that fail."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[tuple[Any, str, Any]] = []

    def break_(self, path: str) -> None:
        *owners, name = path.split(".")
        owner: Any = self.tracker
        for step in owners:
            owner = getattr(owner, step)
        self.replaced.append((owner, name, getattr(owner, name)))
        setattr(owner, name, Broken())

    def stop(self) -> None:
        for owner, name, original in self.replaced:
            setattr(owner, name, original)
        self.tracker.stop()


@pytest.fixture
def notebook():
    made = Faulty()
    yield made
    made.stop()


OF_CALLS = [
    "identity", "provenance", "forecaster", "finished", "counted", "failed", "sample", "recent", "freed", "reader",
    "recognition", "names", "carriers", "hues", "names.search", "recognition.models", "recognition.freed",
    "recognition.identity", "reader.identity", "reader.provenance", "reader.freed", "carriers.names",
]  # fmt: skip
OF_WRITES = ["lines", "statements", "watched", "log", "steps", "steps.watched", "steps.log", "steps.provenance"]
OF_TRACKER = ["live", "history", "cells", "failures", "retention", "listeners", "identity", "live.reader", "live.watch"]


@pytest.mark.parametrize(
    "path",
    [
        *(f"log.{name}" for name in OF_CALLS),
        *(f"write_recorder.{name}" for name in OF_WRITES),
        *OF_TRACKER,
    ],
)
def test_a_collaborator_that_fails_reaches_nobody(path, notebook) -> None:
    plain: dict[str, Any] = {"torch": torch}
    notebook.tracker.stop()
    exec(SOURCE, plain)
    notebook.tracker.start()
    notebook.break_(path)
    assert notebook.run(SOURCE) is None
    found = notebook.namespace
    assert torch.equal(found["x"], plain["x"]) and torch.equal(found["grad"], plain["grad"])
    assert found["x"].grad is None
    failing = notebook.run("loss.backward()")
    assert isinstance(failing, RuntimeError) and "second time" in str(failing)
    assert not ti.in_backward()


@pytest.mark.parametrize("path", ["log.identity", "log.reader", "log.names.search", "live.reader", "history"])
def test_a_fault_of_ours_is_noted(path, notebook) -> None:
    notebook.break_(path)
    notebook.run(SOURCE)
    assert "a fault of ours" in " ".join(notebook.tracker.problems)


@pytest.mark.parametrize("fault", [None, "log.reader", "log.freed"])
def test_nothing_outlives_a_call_that_raises(fault, notebook) -> None:
    if fault is not None:
        notebook.break_(fault)
    notebook.run(
        "base = torch.ones(3, requires_grad=True) * 1.0\nbase[0] = 2.0\nloss = base.exp().sum()\nloss.backward()"
    )
    assert isinstance(notebook.run("loss.backward()"), RuntimeError)
    assert notebook.tracker.log.running == {}
    assert not ti.in_backward()
    ref = weakref.ref(notebook.namespace["base"])
    notebook.namespace.pop("base"), notebook.namespace.pop("loss")
    notebook.errors.clear()
    torch.ones(1, requires_grad=True).sum().backward()  # makes the engine drop the tasks that a failed call had queued
    gc.collect()
    assert ref() is None


def test_an_interrupt_inside_the_engine_ends_the_call_and_tracking_goes_on(notebook) -> None:
    source = (
        "x = torch.ones(2, requires_grad=True)\nx.register_hook(stop)\n"
        "try:\n    (x * 2).sum().backward()\nexcept KeyboardInterrupt:\n    stopped = True\n"
        "z = torch.ones(1, requires_grad=True)\n(z * 3).sum().backward()"
    )

    def stop(grad):
        raise KeyboardInterrupt

    notebook.namespace["stop"] = stop
    assert notebook.run(source) is None
    assert notebook.namespace["stopped"] is True
    assert [call.result for call in notebook.tracker.calls] == ["raised", "ok"]


def test_a_step_that_raises_leaves_the_lines_after_it_unknown_at_worst(notebook) -> None:
    source = (
        "x = torch.ones(2, requires_grad=True)\nopt = torch.optim.SGD([x], lr=0.1)\n(x * 2).sum().backward()\n"
        "opt.param_groups[0]['lr'] = 'no number'\ntry:\n    opt.step()\nexcept Exception:\n    caught = True\n"
        "y = x * 3\nz = y * y"
    )
    assert notebook.run(source) is None
    assert notebook.namespace["caught"] is True
    now = notebook.tracker.snapshot()
    for index in range(len(now)):
        place = now.place_of(index)
        assert place is None or place.line in (9, 10), place


def test_after_a_step_that_raises_lines_have_places_again_from_the_next_module_on(notebook) -> None:
    source = (
        "net = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "net(torch.ones(1, 2)).sum().backward()\nopt.param_groups[0]['lr'] = 'no number'\ntry:\n    opt.step()\n"
        "except Exception:\n    caught = True\ny = net(torch.ones(1, 2))\nz = y * y"
    )
    assert notebook.run(source) is None
    assert notebook.namespace["caught"] is True
    now = notebook.tracker.snapshot()
    places = {now.name_of(i): now.place_of(i) for i in range(len(now))}
    assert places["AddmmBackward0"].line == 9 and places["MulBackward0"].line == 10
