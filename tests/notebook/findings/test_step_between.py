"""A step of an optimizer between two backwards, before anything raises; and the carrier that was assigned anew."""

from __future__ import annotations

MODEL = (
    "from torch import nn\nmodel = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\n"
    "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nx = torch.ones(2, 3)"
)
TWO = "out = model(x)\na, b = out.pow(2).mean(), out.abs().mean()"


def test_it_is_said_where_the_graph_was_retained_for_another_call(run):
    (found,) = run(MODEL, TWO, "a.backward(retain_graph=True)\nopt.step()")
    assert (found.kind, found.severity) == ("inplace", "info"), "it need not be a mistake"
    assert found.headline.startswith("`b.backward()` would raise: `model[2].weight`")
    assert (found.modified_by, found.modified_at.cell, found.modified_at.line) == ("opt.step()", 4, 2)
    assert found.path == ("b", "out", "AddmmBackward0")


def test_after_an_ordinary_step_nothing_is_said(run):
    """The loss of a validation batch is stale after the next step, and nobody intends to run it."""
    validation = "seen = model(x).abs().mean()"
    assert run(MODEL, validation, "model(x).pow(2).mean().backward()\nopt.step()") == []
    assert run(MODEL, validation, "a = model(x).pow(2).mean()\na.backward(retain_graph=True)\nopt.step()\na = 0") == []


def test_nothing_is_said_once_the_other_call_has_run(run):
    assert run(MODEL, TWO, "a.backward(retain_graph=True)\nb.backward()\nopt.step()") == []


def test_the_carrier_has_the_name_that_it_had_when_the_old_part_was_freed(run):
    (found, *_) = run(
        "from torch import nn\nrnn, hidden = nn.LSTM(3, 4), None",
        "for step in range(2):\n    out, hidden = rnn(torch.ones(2, 1, 3), hidden)\n    loss = out.sum()\n    loss.backward()",
    )
    assert found.carriers[0] == "hidden[0]" and "through `hidden[0]`" in found.text
    assert "hidden[0]" in found.path
