"""Methods of a training loop that are named and not called: one finding, which says what follows."""

import pytest
from told import findings_of

SETUP = "net = nn.Linear(3, 1)\nx = torch.randn(4, 3)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
LOOP = "for _ in range(5):\n    loss = net(x).square().mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\nprint(1)"


@pytest.mark.parametrize(
    ("called", "line", "follows"),
    [
        ("opt.zero_grad()", 3, "gradients add up"),
        ("loss.backward()", 4, "No gradient is computed"),
        ("opt.step()", 5, "No step is made"),
    ],
)
def test_one_finding_names_the_line_and_what_follows(called, line, follows):
    (found,) = findings_of(SETUP, LOOP.replace(called, called.removesuffix("()")))
    assert found.headline == f"`{called.removesuffix('()')}` is not called." and follows in found.text
    assert (found.made_at.cell, found.made_at.line) == (2, line)
    assert [edit.new for edit in found.fixes[0].edits] == ["()"]


def test_a_loop_that_calls_them_is_right():
    assert findings_of(SETUP, LOOP) == ()


def test_a_field_called_step_is_none():
    assert findings_of(SETUP, LOOP, "class Clock:\n    step = 1\nclock = Clock()\nclock.step\nprint(1)") == ()
