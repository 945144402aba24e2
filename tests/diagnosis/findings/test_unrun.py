"""Outputs that an evaluation keeps with their graphs: worth knowing if much, and no alarm for losses that are run."""

import pytest
from told import findings_of

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.findings import unrun
from graphwidget.diagnosis.source.edits import text_edit

NET = (
    "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
    "net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8))\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    "def batches(n=10):\n    return [torch.randn(256, 64) for _ in range(n)]\n"
)
TRAIN = "for x in batches():\n    loss = net(x).pow(2).mean()\n    opt.zero_grad(); loss.backward(); opt.step()\n"
EVALUATE = "outs = []\nfor x in batches():\n    outs.append(net(x))\n"
LOSSES = "losses = []\nfor x in batches():\n    losses.append(net(x).pow(2).mean())\n"


def said(*cells):
    """The findings after cells of a program."""
    from graphwidget.diagnosis.diagnose import diagnose

    space = {"__name__": "__main__"}
    tracker = Tracker(lambda: space, diagnose=diagnose)
    tracker.start()
    try:
        for number, cell in enumerate(cells, 1):
            name = f"<cell {number} of {id(space)}>"
            tracker.begin_cell(number, cell, cell_id=str(number), filename=name)
            exec(compile(cell, name, "exec"), space)
            tracker.end_cell()
        return tracker.findings(), tracker.record()
    finally:
        tracker.stop()


@pytest.mark.parametrize(
    "evaluate",
    [
        EVALUATE,
        "outs = [net(x) for x in batches()]\n",
        "outs = {}\nfor i, x in enumerate(batches()):\n    outs[i] = net(x)\n",
        "class Log:\n    outs = []\nlog = Log()\nfor x in batches():\n    log.outs.append(net(x).softmax(1))\n",
        "def evaluate():\n    kept = []\n    for x in batches():\n        kept.append(net(x))\n    return kept\nouts = evaluate()\n",
    ],
)
def test_outputs_of_an_evaluation_without_no_grad(evaluate):
    (finding,), _ = said(NET, TRAIN, evaluate)
    assert finding.severity == "info" and finding.carriers[0].endswith("outs")
    assert finding.headline == f"`{finding.carriers[0]}` keeps 10 graphs that no backward has run."
    assert finding.bytes >= 10 * 256 * 512 * 4  # the activations of the hidden layer
    assert "torch.no_grad()" in finding.fixes[0].text


@pytest.mark.parametrize(
    "cells",
    [
        (LOSSES,),
        (LOSSES, "sum(losses).backward()\n"),
        (LOSSES, "total = torch.stack(losses).mean()\n", "total.backward()\n"),
        (EVALUATE, "torch.cat(outs).pow(2).mean().backward()\n"),
        ("with torch.no_grad():\n    outs = [net(x) for x in batches()]\n",),
        ("outs = [net(x).detach() for x in batches()]\n",),
        ("outs = [net(x).argmax(1) for x in batches()]\n",),
        ("h, hs = torch.zeros(256, 8), []\nfor x in batches():\n    h = net(x) + h.tanh()\n    hs.append(h)\n",),
        ("weights = list(net.parameters())\nouts = [net(torch.randn(1, 64)) for _ in range(10)]\n",),
    ],
)
def test_what_is_no_evaluation_or_little_is_not_reported(cells):
    findings, _ = said(NET, TRAIN, *cells)
    assert findings == ()


def test_losses_that_are_only_looked_at_are_those_of_an_evaluation():
    (finding,), _ = said(NET, TRAIN, LOSSES, "mean = sum(loss.item() for loss in losses) / len(losses)\n")
    assert finding.severity == "info" and finding.carriers == ("losses",)


def test_the_threshold_can_be_another():
    _, record = said(NET, EVALUATE.replace("batches()", "batches(4)"))
    (finding,) = unrun.find(record, (), much=1000)
    assert list(unrun.find(record, (), much=finding.bytes + 1)) == []
    assert list(unrun.find(record, ("outs",), much=1000)) == []


CELL = "cell = nn.GRUCell(64, 512)\ncell.eval()\n"
ROLLOUT = "h = None\nfor x in batches(12):\n    h = cell(x, h)\n"


def test_a_state_that_a_model_in_evaluation_mode_carries_on_is_told_with_its_line():
    (found,) = findings_of(NET, CELL, ROLLOUT)
    assert (found.kind, found.severity, found.carriers) == ("leak", "warning", ("h",))
    assert "carries the graphs of 12 passes" in found.headline
    fixed = text_edit.apply(ROLLOUT, found.fixes[0].edits)
    assert "    with torch.no_grad():\n        h = cell(x, h)" in fixed
    assert not findings_of(NET, CELL, fixed)


@pytest.mark.parametrize(
    "cells",
    [
        (NET, CELL.replace("cell.eval()\n", ""), ROLLOUT),  # it may be about to train
        (NET, CELL, ROLLOUT, "def loss(h):\n    h.sum().backward()\n"),
        (NET, CELL, ROLLOUT.replace("batches(12)", "batches(6)")),
        (NET, CELL, "for x in batches(12):\n    h = cell(x)\n"),
    ],
)
def test_a_state_that_a_backward_may_run_or_that_a_few_passes_built_is_not_told(cells):
    assert not findings_of(*cells)
