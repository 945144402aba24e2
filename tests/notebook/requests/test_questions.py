"""A click on a call that would raise runs nothing: it asks, says what the call would do before it fails, and runs it
only when that very question is answered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from stage import Stage

from graphwidget.notebook.requests import actions

TRUNK = """import torch
w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
z = w.exp()
loss1 = (z * 2).sum()
loss2 = (z * v).tanh().sum()
"""


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    stage.cell(TRUNK)
    yield stage
    stage.tracker.stop()


def asks(stage: Stage, path: str, **arguments) -> dict:
    return stage.result("backward", root=stage.root(path), **arguments)["asks"]


def untouched(stage: Stage) -> bool:
    """Whether `loss2` is as `loss1.backward()` left it."""
    return len(stage.tracker.calls) == 1 and stage.names["v"].grad is None


def test_it_says_what_it_would_free_and_add_to_before_it_fails_and_runs_nothing(stage: Stage) -> None:
    stage.cell("loss1.backward()")
    question = asks(stage, "loss2")
    assert question["title"] == "loss2.backward() would raise"
    assert question["lines"] == [
        "It would raise at `ExpBackward0` (In[1]:3): its saved tensor result was freed by call 1 (In[2]:1).",
        "Before that it would free 3 saved tensors, 36 B. Freed saved tensors do not come back.",
        "It would add to the .grad of `v`.",
    ]
    assert untouched(stage)
    # It is what then happens.
    result = stage.run_anyway("loss2")
    assert "second time" in result["raised"]["message"]
    assert (result["freedSlots"], result["freedBytes"]) == (3, 36)
    assert stage.names["v"].grad is not None
    assert stage.names["w"].grad.tolist() == pytest.approx((2 * torch.ones(3).exp()).tolist())


def test_with_retain_graph_it_frees_nothing_and_with_keep_grad_it_puts_back(stage: Stage) -> None:
    stage.cell("loss1.backward()")
    lines = asks(stage, "loss2", retain_graph=True, keep_grad=True)["lines"]
    assert lines[1:] == [
        "Before that it would free nothing.",
        "It would add to the .grad of `v` (put back afterwards).",
    ]
    assert stage.run_anyway("loss2", retain_graph=True, keep_grad=True)["freedSlots"] == 0
    assert stage.names["v"].grad is None


@pytest.mark.parametrize("confirmed", [1, -1, 2**31])
def test_an_answer_to_no_question_asks(stage: Stage, confirmed: int) -> None:
    stage.cell("loss1.backward()")
    assert asks(stage, "loss2", confirmed=confirmed) and untouched(stage)


@pytest.mark.parametrize("other", [{"retain_graph": True}, {"keep_grad": True}])
def test_the_answer_to_one_question_is_none_to_another(stage: Stage, other: dict) -> None:
    stage.cell("loss1.backward()")
    key = asks(stage, "loss2")["key"]
    assert asks(stage, "loss2", confirmed=key, **other)["key"] != key and untouched(stage)


def test_what_has_changed_since_the_question_is_asked_anew(stage: Stage) -> None:
    stage.cell("loss1.backward()")
    first = asks(stage, "loss2")
    with torch.no_grad():
        stage.names["v"].add_(1)  # no cell, no event: only a look at this moment can tell
    second = asks(stage, "loss2", confirmed=first["key"])
    assert "MulBackward0" in second["lines"][0] and second["key"] != first["key"] and untouched(stage)
    assert stage.result("backward", root=stage.root("loss2"), confirmed=second["key"])["raised"]


def test_a_write_after_the_hover_is_seen_by_the_click(stage: Stage) -> None:
    assert stage.result("forecast", root=stage.root("loss2"))["backward"]["ok"] is True
    with torch.no_grad():
        stage.names["v"].add_(1)
    line = asks(stage, "loss2")["lines"][0]
    assert "modified in place" in line and "MulBackward0" in line
    assert stage.names["v"].grad is None


def test_a_graph_that_was_freed_while_the_click_waited_asks(stage: Stage) -> None:
    token = object()
    stage.turns.cell_begins(token, "In[7]")
    stage.ask("backward", root=stage.root("loss2"))
    stage.names["loss1"].backward()
    stage.turns.cell_ends(token)
    assert stage.replies[-1]["result"]["asks"]["title"] == "loss2.backward() would raise"
    assert untouched(stage)


def test_what_cannot_be_known_runs(stage: Stage) -> None:
    stage.cell(
        """class Odd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return globals()["choose"](g)
choose = lambda g: g * 2
odd = Odd.apply(w).exp().sum()"""
    )
    assert "asks" not in stage.result("backward", root=stage.root("odd"))
    assert stage.names["w"].grad is not None


def test_a_forecast_that_fails_keeps_no_call_from_running(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions.engine, "forecast", lambda *args, **kwargs: 1 / 0)
    assert stage.result("backward", root=stage.root("loss1"))["raised"] is None


def test_what_requires_no_grad_any_more(stage: Stage) -> None:
    stage.cell("late = (w * 2).sum()")
    stage.names["late"].detach_()
    reply = stage.ask("backward", root=stage.root("late"))
    assert reply["ok"] is False or "would raise" in reply["result"]["asks"]["title"]


def test_a_hover_says_the_same_and_counts_as_the_view_does(stage: Stage) -> None:
    stage.cell("loss1.backward()")
    told = stage.result("forecast", root=stage.root("loss2"))
    plain = told["backward"]
    assert plain["outcome"] == "would raise at `ExpBackward0`: ① freed its `result`" and plain["reaches"] == ["v"]
    assert plain["facts"] == [
        "The node was made at In[1]:3.",
        "① ran at In[2]:1.",
        "Before that it would free 3 saved tensors.",
    ]
    assert told["retain"]["facts"][-1] == "Before that it would free nothing."
    assert plain["sentence"] == (
        "would raise at ExpBackward0 (In[1]:3): its saved tensor result was freed by call 1 (In[2]:1)."
    )


def test_the_call_that_freed_it_is_known_after_a_long_loop(stage: Stage) -> None:
    stage.cell("for it in range(30):\n    total = (w * v).exp().sum()\n    total.backward()")
    assert "was freed by call 30 (In[2]:3, iteration 29)" in asks(stage, "total")["lines"][0]


GAN = """from torch import nn
D, G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), nn.Linear(2, 4)
opt_D = torch.optim.SGD(D.parameters(), lr=0.1)
fake = G(torch.randn(3, 2))
d_loss, g_loss = D(fake.detach()).mean(), -D(fake).mean()
d_loss.backward()
opt_D.step()"""


def test_a_loss_that_a_step_has_made_impossible_says_so_before_anybody_runs_it(stage: Stage) -> None:
    """It never ran, and no finding is due: the button knows all the same."""
    stage.cell(GAN)
    told = stage.result("forecast", root=stage.root("g_loss"))
    for one in told.values():
        assert one["ok"] is False and "modified in place" in one["sentence"] and one["failsAt"] is not None
        assert one["outcome"] == "would raise at `AddmmBackward0`: its saved tensor mat2 was modified in place since"
    question = asks(stage, "g_loss")
    assert question["title"] == "g_loss.backward() would raise" and "modified in place" in question["lines"][0]
    assert all(parameter.grad is None for parameter in stage.names["G"].parameters())
    assert "inplace operation" in stage.run_anyway("g_loss")["raised"]["message"]
