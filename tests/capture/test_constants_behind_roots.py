"""What a root without a graph was made of, where nothing was cut."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType

import pytest
import torch

from graphwidget.capture.flow.lineage import LineageMode
from graphwidget.model import MeasuredConstant, TextLine

Kinds = list[tuple[str, str]]


def own_frames() -> list[FrameType]:
    """The frames of the functions here that stand in a test."""
    frame: FrameType | None = sys._getframe()
    found = []
    while frame is not None:
        if frame.f_code.co_name == "beside":
            found.append(frame)
        frame = frame.f_back
    return found


@pytest.fixture
def mode(monkeypatch: pytest.MonkeyPatch) -> Iterator[LineageMode]:
    for name in ("__init__", "zero_grad"):  # which `begin` replaces for good
        monkeypatch.setattr(torch.optim.Optimizer, name, getattr(torch.optim.Optimizer, name))
    monkeypatch.setattr(torch.nn.Parameter, "__new__", torch.nn.Parameter.__new__)
    one = LineageMode(lambda: (TextLine(1, None, 1),), lambda leaf: "", None, own_frames)
    one.begin()
    yield one
    one.end()


def kinds(mode: LineageMode, root: torch.Tensor) -> Kinds:
    return [(one.kind, one.by) for one in mode.measured(0, (root,)).constants]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: torch.zeros(1) * 2, [("zero", "zeros")]),
        (lambda: torch.tensor(0) + torch.ones(()), [("zero", "tensor"), ("constant", "ones")]),
        (lambda: torch.full((2,), 0.0).sum(), [("zero", "full")]),
        (lambda: torch.ones(2).new_tensor([0.0]), [("zero", "new_tensor")]),
        (lambda: torch.rand(2).mean(), [("data", "rand")]),
        (lambda: torch.tensor([0.25]), [("numbers", "tensor")]),
        (lambda: torch.zeros(1) + 0.25, [("zero", "zeros"), ("numbers", "add")]),
        (lambda: torch.zeros(1) * 0.25, [("zero", "zeros")]),
        (lambda: torch.zeros(1) / torch.arange(3).sum(), [("zero", "zeros")]),  # a count carries no graph
        (lambda: torch.rand(2).copy_(torch.zeros(2)), [("zero", "zeros")]),  # what is written over is gone
        (lambda: torch.zeros(1) + torch.from_numpy(torch.ones(1).numpy()), [("zero", "zeros"), ("unseen", "")]),
        (lambda: torch.nn.Parameter(torch.ones(1), False) + torch.zeros(1), [("frozen", ""), ("zero", "zeros")]),
    ],
)
def test_what_it_was_made_of(mode: LineageMode, make: Callable[[], torch.Tensor], expected: Kinds) -> None:
    assert kinds(mode, make()) == expected


def test_only_what_was_made_since_the_last_call_is_of_the_latest_pass(mode: LineageMode) -> None:
    kept = torch.zeros(1)
    mode.called(0, ())
    root = kept + torch.ones(())
    (old, new) = sorted(mode.measured(1, (root,)).constants, key=lambda one: one.latest)
    assert (old.latest, old.single, new.latest, new.single) == (False, False, True, True)


def test_variables_beside_it_are_named_without_what_they_were_computed_from(mode: LineageMode) -> None:
    w = torch.ones(2, requires_grad=True)

    def beside() -> MeasuredConstant:
        old = w * 2
        mode.called(0, ())
        hidden = w * 3
        out = {"a": hidden + 1, "n": 3}
        score = w.exp()
        root = torch.zeros(())
        assert old is not None and score is not None and out is not None
        return mode.measured(1, (root,)).constants[0]

    assert beside().beside[0] == ("score", "out['a']")
