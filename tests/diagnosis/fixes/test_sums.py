"""Several losses of one forward pass: one backward of their sum, where nothing uses the gradients of one apart."""

import pytest

from graphwidget.diagnosis.source.edits.text_edit import apply_to
from graphwidget.model import Fix
from tests.support.told import findings_of

NET = "net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))\n"
NET += "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
HELPER = "class Runner:\n    def backward(self, loss):\n        loss.backward()\nrunner = Runner()\n"
PASS = "for _ in range(2):\n    opt.zero_grad()\n    out = net(torch.ones(2, 4))\n{body}    opt.step()\n"
TWO = "    a = out[:, 0].exp().mean()\n    {first}\n    b = out[:, 1].exp().mean()\n    b.backward()\n"


def fixes_of(body: str) -> tuple[Fix, ...]:
    (found,) = findings_of(NET + HELPER, PASS.format(body=body))
    return found.fixes


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        (
            "    for i in range(3):\n        part = out[:, i].exp().mean()\n        part.backward()\n",
            "    total.backward()\n",
        ),
        (
            "    i = 0\n    while i < 3:\n        part = out[:, i].exp().mean()\n        runner.backward(part)\n"
            "        i += 1\n",
            "    runner.backward(total)\n",
        ),
        ("    for i in range(3):\n        (out[:, i] * i).exp().mean().backward()\n", "    sum("),
    ],
    ids=["in a loop", "handed to a helper", "without a name"],
)
def test_losses_of_a_loop_are_added_up_first(body: str, whole: str) -> None:
    first = fixes_of(body)[0]
    assert first.id == "single_backward_sum" and first.verified
    text = apply_to({2: PASS.format(body=body)}, first.edits)[2]
    assert whole in text and findings_of(NET + HELPER, text) == ()


def test_losses_that_follow_one_another_can_be_added_up() -> None:
    fixes = fixes_of(TWO.format(first="a.backward()"))
    assert [fix.id for fix in fixes][:2] == ["retain_graph_earlier_call", "single_backward_sum"]
    assert fixes[1].verified and "(a + b).backward()" in fixes[1].text


@pytest.mark.parametrize(
    "first",
    [
        "a.backward(); kept = [p.grad.clone() for p in net.parameters()]; opt.zero_grad()",
        "a.backward(); norm = net[0].weight.grad.norm()",
        "a.backward(); nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
    ],
    ids=["kept apart", "measured", "clipped"],
)
def test_losses_whose_gradients_are_used_apart_are_not_added_up(first: str) -> None:
    separate = TWO.format(first=first)
    beside = separate.replace("    b = out[:, 1].exp().mean()\n", "").replace(
        "    a = ", "    b = out[:, 1].exp().mean()\n    a = "
    )
    for body in (separate, beside):
        assert "single_backward_sum" not in {fix.id for fix in fixes_of(body)}
