"""Where parameters stop to be finite, and which operation or node made the first such value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import nn

from graphwidget.capture.flow.lineage import LineageMode
from graphwidget.capture.flow.nonfinite_steps import NonFiniteFlow
from graphwidget.capture.writes.optimizers.nonfinite import NonFiniteSteps, first_not_finite
from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import MeasuredNonFinite, TextLine


class Program:
    """A mode that also measures where values stop to be finite, and passes of one parameter."""

    def __init__(self) -> None:
        self.w = nn.Parameter(torch.tensor([0.0, 4.0]))
        self.made = (TextLine(1, None, 7),)
        self.flow = NonFiniteFlow(lambda number: self.made)
        self.mode = LineageMode(lambda: (TextLine(1, None, 3),), lambda leaf: "w" if leaf is self.w else "", self.flow)
        self.n = -1

    def backward(self, loss: torch.Tensor) -> None:
        self.n += 1
        self.mode.called(self.n, loss)
        loss.backward()

    def passes(self, compute: Callable[[torch.Tensor, int], torch.Tensor], lr: float = 0.1) -> MeasuredNonFinite | None:
        optimizer = torch.optim.SGD([self.w], lr=lr)
        for number in range(3):
            optimizer.zero_grad()
            self.backward(compute(self.w, number))
            optimizer.step()
        return self.mode.measured(None).nonfinite


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    for name in ("__init__", "zero_grad"):  # which `begin` replaces for good
        monkeypatch.setattr(torch.optim.Optimizer, name, getattr(torch.optim.Optimizer, name))
    monkeypatch.setattr(nn.Parameter, "__new__", nn.Parameter.__new__)
    one = Program()
    one.mode.begin()
    yield one
    one.mode.end()


def test_a_node_that_passes_on_what_is_not_finite(program: Program) -> None:
    found = program.passes(lambda w, number: (w.sqrt() if number == 1 else w * 0).sum())
    assert found is not None and (found.stage, found.by, found.what) == ("backward", "SqrtBackward0", "inf")
    assert (found.step, found.call, found.paths, found.value) == (2, 1, ("w",), "-inf")
    assert found.made == program.made and found.held == "`result` 0"


def test_an_operation_of_the_forward(program: Program) -> None:
    found = program.passes(lambda w, _: (torch.log(w) * torch.zeros(2)).sum())
    assert found is not None and (found.stage, found.by, found.behind) == ("forward", "mul", "log")
    assert found.what == "nan" and found.made[0].line == found.behind_made[0].line == 3


def test_a_number_that_is_written(program: Program) -> None:
    def compute(w: torch.Tensor, _: int) -> torch.Tensor:
        x = torch.ones(2)
        x[0] = math.nan
        return (w * x).sum()

    found = program.passes(compute)
    assert found is not None and (found.stage, found.by) == ("written", "__setitem__")


def test_a_value_that_nobody_saw_being_made(program: Program) -> None:
    found = program.passes(lambda w, _: (w * torch.from_numpy(np.array([np.nan, 1.0], "f"))).sum())
    assert found is not None and (found.stage, found.by, found.made[0].line) == ("given", "", 3)


def test_the_step_itself(program: Program) -> None:
    found = program.passes(lambda w, _: (w * 1e30).sum(), lr=1e30)
    assert found is not None and (found.stage, found.value, found.step) == ("step", "-inf", 1)


def test_what_was_skipped_is_not_blamed(program: Program) -> None:
    """A gradient that is not finite is cleared before the step, as a scaler does; later there is another one."""
    optimizer = torch.optim.SGD([program.w], lr=0.1)
    program.backward(program.w.sqrt().sum())
    optimizer.zero_grad()
    program.backward((program.w * 2).sum())
    optimizer.step()
    assert program.mode.measured(None).nonfinite is None
    optimizer.zero_grad()
    with torch.no_grad():
        program.w.zero_()
    program.backward(program.w.pow(0.5).sum())
    optimizer.step()
    found = program.mode.measured(None).nonfinite
    assert found is not None and (found.by, found.call, found.step) == ("PowBackward0", 2, 2)


def test_what_was_never_finite_is_left_alone(program: Program) -> None:
    with torch.no_grad():
        program.w[0] = -math.inf
    assert program.passes(lambda w, _: torch.softmax(w, 0).square().sum()) is None


# ------------------------------------------------------------------ while the program runs as it is


def seen(*values: torch.Tensor, keep: bool = True) -> list[tuple[str, int]]:
    w = torch.ones(3, requires_grad=True)
    optimizer, steps = torch.optim.SGD([w]), NonFiniteSteps(WatchedTensors())
    for value in values:
        w.data.copy_(value)
        steps.step(optimizer, [w], lambda: None)
    if not keep:
        del optimizer, w
    return [(one.value, one.steps) for one in steps.found()]


ONES, NANS = torch.ones(3), torch.full((3,), math.nan)


def test_what_holds_nan_at_the_end() -> None:
    assert seen(ONES, NANS) == [("nan", 2)]
    assert seen(ONES, NANS, keep=False) == [("nan", 2)]
    assert seen(ONES) == []


def test_what_was_restored_is_finite() -> None:
    assert seen(NANS, ONES) == seen(NANS, ONES, keep=False) == []


def test_a_few_values_stand_for_many() -> None:
    many = torch.ones(1000)
    many[500:] = math.inf
    assert first_not_finite(many, 2) == "inf" and not first_not_finite(many[:400], 2)
    assert first_not_finite(torch.tensor([1.0, -math.inf]), 10) == "-inf"
    assert not first_not_finite(torch.ones(3, device="meta"), 10) and not first_not_finite(torch.ones(2).long(), 10)
