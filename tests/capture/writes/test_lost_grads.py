"""Which steps went by the last of several calls, because the gradients of the others were cleared."""

import weakref

import pytest
import torch

from graphwidget.capture.writes.optimizers.lost_grads import LostGrads
from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import Place

PLACE = Place(1, 1, "opt.step()", 1, 1)


class Loop:
    """A parameter, its optimizer and what follows both; each call is told as the tracker tells it."""

    def __init__(self):
        self.w = torch.nn.Parameter(torch.ones(2))
        self.opt = torch.optim.SGD([self.w], lr=0.1)
        self.begun = 0
        self.lost = LostGrads(WatchedTensors(), lambda: self.begun)

    def call(self):
        self.lost.call(False)
        self.begun += 1
        self.w.sum().backward()
        self.lost.call(True)

    def step(self):
        self.opt.step()
        self.lost.step(self.opt, [self.w], lambda: PLACE)

    def passes(self, *parts):
        """Parts: "c" a call, "0" clearing, "s" a step."""
        does = {"c": self.call, "0": self.opt.zero_grad, "s": self.step}
        for one in "".join(parts):
            does[one]()


@pytest.mark.parametrize(
    ("first", "each", "often"),
    [
        ("cs", "0c0cs", 1),
        ("cs", "0c0c0cs", 2),
        ("cs", "c0cs0", 1),
    ],
)
def test_calls_whose_gradients_are_gone_before_the_step(first, each, often):
    loop = Loop()
    loop.passes(first, each)
    assert not loop.lost.found(), "one step shows nothing"
    loop.passes(each)
    (found,) = loop.lost.found()
    assert (found.place, found.often) == (PLACE, often)
    assert found.used == found.lost + 1 == loop.begun - 1


@pytest.mark.parametrize("each", ["0cs", "0ccs", "cs0", "0c0ccs", "0c00s"])
def test_steps_that_lose_nothing_or_go_by_several_calls(each):
    loop = Loop()
    loop.passes("cs", *[each] * 4)
    assert not loop.lost.found()


def test_one_step_that_loses_nothing_is_enough():
    loop = Loop()
    loop.passes("cs", *["0c0cs"] * 3)
    assert loop.lost.found()
    loop.passes("0cs")
    assert not loop.lost.found()


def test_a_gradient_that_something_else_wrote_is_not_what_the_call_gave():
    loop = Loop()
    loop.passes("cs")
    for _ in range(3):
        loop.passes("0c0c")
        loop.w.grad = torch.zeros(2)
        loop.passes("s")
    assert not loop.lost.found()


def test_a_clip_leaves_it_what_the_call_gave():
    loop = Loop()
    loop.passes("cs")
    for _ in range(3):
        loop.passes("0c0c")
        torch.nn.utils.clip_grad_norm_([loop.w], 0.1)
        loop.passes("s")
    assert loop.lost.found()


def test_what_came_along_with_the_step_of_another_optimizer_is_not_lost():
    """A critic's weights get a gradient from the actor's loss, too: it is cleared, and nothing is lost."""
    loop = Loop()
    actor = torch.nn.Parameter(torch.ones(2))
    other = torch.optim.SGD([actor], lr=0.1)
    actor.grad = torch.ones(2)
    loop.passes("cs")
    for _ in range(4):
        loop.passes("c")
        loop.lost.step(other, [actor], lambda: PLACE)
        loop.passes("0cs")
    assert not loop.lost.found()


def test_no_gradient_lives_longer():
    loop = Loop()
    loop.passes("cs", "0c")
    grad = weakref.ref(loop.w.grad)
    loop.opt.zero_grad()
    assert grad() is None
