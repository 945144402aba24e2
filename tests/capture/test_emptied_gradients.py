"""Gradients that are emptied before a step has used them, whatever empties them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from graphwidget.capture.flow.lineage import LineageMode
from graphwidget.model import MeasuredEmptied, TextLine

LINE = [0]


@pytest.fixture
def mode(monkeypatch: pytest.MonkeyPatch) -> Iterator[LineageMode]:
    for name in ("__init__", "zero_grad"):  # which `begin` replaces for good
        monkeypatch.setattr(torch.optim.Optimizer, name, getattr(torch.optim.Optimizer, name))
    monkeypatch.setattr(nn.Parameter, "__new__", nn.Parameter.__new__)
    one = LineageMode(lambda: (TextLine(1, None, LINE[0]),), lambda leaf: "w")
    one.begin()
    yield one
    one.end()


def passes(mode: LineageMode, clear: Callable[[nn.Module, torch.optim.Optimizer], object], **order: bool) -> None:
    net = nn.Linear(2, 1)
    opt = torch.optim.AdamW(net.parameters(), 0.1)
    for n in range(3):
        loss = net(torch.ones(2)).sum()
        mode.called(n, (loss,))
        loss.backward()
        if order.get("step_first"):
            opt.step()
        LINE[0] = 7
        clear(net, opt)
        LINE[0] = 9
        opt.step()


def each(net: nn.Module, change: Callable[[nn.Parameter], object]) -> None:
    for p in net.parameters():
        change(p)


def drop(p: nn.Parameter) -> None:
    p.grad = None


def scale(p: nn.Parameter) -> None:
    assert p.grad is not None
    p.grad *= 0


WAYS = {
    "zero_grad": (lambda net, opt: opt.zero_grad(), False),
    "zero_grad of a module": (lambda net, opt: net.zero_grad(), False),
    "None": (lambda net, opt: each(net, drop), False),
    "zeros": (lambda net, opt: opt.zero_grad(set_to_none=False), True),
    "zero_": (lambda net, opt: each(net, lambda p: p.grad.zero_()), True),
    "data": (lambda net, opt: each(net, lambda p: p.grad.data.zero_()), True),
    "times zero": (lambda net, opt: each(net, scale), True),
    "foreach": (lambda net, opt: torch._foreach_zero_([p.grad for p in net.parameters()]), True),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_empties_them_is_known_with_its_line(mode: LineageMode, way: str) -> None:
    clear, zeros = WAYS[way]
    passes(mode, clear)
    lines = [(TextLine(1, None, line),) for line in (7, 9)]
    assert mode.measured(None).emptied == (MeasuredEmptied(2, *lines, 3, zeros, ("w", "w")),)


def by_hand(net: nn.Module, opt: torch.optim.Optimizer) -> None:
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
    opt.zero_grad()


def by_data(net: nn.Module, opt: torch.optim.Optimizer) -> None:
    for p in net.parameters():
        p.data.sub_(0.1 * p.grad)
        p.grad = None


@pytest.mark.parametrize("clear", [by_hand, by_data, lambda net, opt: None, lambda net, opt: each(net, scale_half)])
def test_gradients_that_were_used_are_not_lost(mode: LineageMode, clear: Callable[..., object]) -> None:
    passes(mode, clear)
    assert not mode.measured(None).emptied


def scale_half(p: nn.Parameter) -> None:
    assert p.grad is not None
    p.grad *= 0.5


def test_a_second_step_of_one_gradient_has_lost_nothing(mode: LineageMode) -> None:
    passes(mode, lambda net, opt: opt.zero_grad(), step_first=True)
    assert not mode.measured(None).emptied


def test_another_optimizer_may_have_used_them(mode: LineageMode) -> None:
    net = nn.Linear(2, 1)
    used, outer = (torch.optim.SGD(net.parameters(), 0.1) for _ in range(2))
    for n in range(3):
        loss = net(torch.ones(2)).sum()
        mode.called(n, (loss,))
        loss.backward()
        used.step()
        used.zero_grad()
        outer.step()
    assert not mode.measured(None).emptied


def test_a_step_that_clears_at_its_own_end_and_a_closure(mode: LineageMode) -> None:
    class Clearing(torch.optim.SGD):
        def step(self, closure=None):  # type: ignore[no-untyped-def, override]
            super().step(closure)
            self.zero_grad()

    net = nn.Linear(2, 1)
    own, lbfgs = Clearing(net.parameters(), 0.1), torch.optim.LBFGS(net.parameters(), 0.1, max_iter=2)
    n = 0

    def closure() -> torch.Tensor:
        nonlocal n
        lbfgs.zero_grad()
        loss = net(torch.ones(2)).pow(2).sum()
        mode.called(n, (loss,))
        loss.backward()
        n += 1
        return loss

    for _ in range(3):
        closure()
        own.step()
        lbfgs.step(closure)
        lbfgs.zero_grad()
    assert not mode.measured(None).emptied
