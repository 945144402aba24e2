"""What optimizers hold and no operation is given, beside a root without a graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from graphwidget.capture.flow.lineage import LineageMode
from graphwidget.model import MeasuredIdle, TextLine


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.fc = nn.Linear(4, 3), nn.Linear(3, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.body(x))  # type: ignore[no-any-return]


@pytest.fixture
def mode(monkeypatch: pytest.MonkeyPatch) -> Iterator[LineageMode]:
    for name in ("__init__", "zero_grad"):  # which `begin` replaces for good
        monkeypatch.setattr(torch.optim.Optimizer, name, getattr(torch.optim.Optimizer, name))
    monkeypatch.setattr(nn.Parameter, "__new__", nn.Parameter.__new__)
    one = LineageMode(lambda: (TextLine(1, None, 7),), lambda _: "")
    one.begin()
    yield one
    one.end()


def idle(mode: LineageMode, root: torch.Tensor) -> MeasuredIdle | None:
    return mode.measured(0, (root,), [sys._getframe(1)]).idle


def with_head(head: nn.Module) -> Net:
    net = Net().requires_grad_(False)
    net.head = head
    return net


@pytest.mark.parametrize(
    ("head", "instead"),
    [(nn.Linear(3, 2), "fc"), (nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), "fc"), (nn.Linear(8, 2), "")],
    ids=["as the old one", "deeper", "of other features"],
)
def test_a_module_that_is_never_called_is_known_with_the_one_beside_it(
    mode: LineageMode, head: nn.Module, instead: str
) -> None:
    net = with_head(head)
    optimizer = torch.optim.SGD([one for one in net.parameters() if one.requires_grad], 0.1)
    found = idle(mode, net(torch.ones(2, 4)).sum())
    assert found is not None and [(one.path, one.instead) for one in found.modules] == [
        ("net.head", "fc") if instead else ("head", "")  # of several names, one that stands beside what is called
    ]
    assert found.count == len(optimizer.param_groups[0]["params"]) and found.lines[0].line == 7
    assert found.frozen[0] == "net.body.weight" and found.frozen[-1] == "net.fc.bias"


def test_a_module_that_is_called_and_uses_none_of_its_parameters_is_no_such_module(mode: LineageMode) -> None:
    class Buffers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.weight = torch.ones(4), nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.w

    net = Buffers()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    found = idle(mode, net(torch.ones(2, 4)).sum())
    assert optimizer and found is not None and not found.modules and found.paths == ("net.weight",)


def test_nothing_is_said_where_it_was_used_or_a_line_left_the_graph(mode: LineageMode) -> None:
    net = with_head(nn.Linear(5, 2))
    optimizer = torch.optim.SGD(net.head.parameters(), 0.1)  # type: ignore[union-attr]
    out = net(torch.ones(2, 4))
    assert idle(mode, out) is not None
    with torch.no_grad():
        net.head(out)  # type: ignore[operator]
    assert idle(mode, out) is None and optimizer
    w = torch.ones(4, requires_grad=True)
    assert idle(mode, (w.detach() * 2).sum()) is None
