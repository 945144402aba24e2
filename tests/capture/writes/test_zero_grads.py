"""Whether a step went by gradients of zeros: looked at once in a loop, and at its end."""

import pytest
import torch

from graphwidget.capture.writes.optimizers import zero_grads
from graphwidget.capture.writes.optimizers.zero_grads import ZeroGrads, is_zero


def stepped(*grads: torch.Tensor | None) -> ZeroGrads:
    w = torch.ones(3, requires_grad=True)
    optimizer, seen = torch.optim.SGD([w]), ZeroGrads()
    for grad in grads:
        w.grad = grad
        seen.step(optimizer, [w])
    return seen


ZEROS, ONE = torch.zeros(3), torch.tensor([0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("grads", "seen"),
    [
        ((ZEROS, ONE, ONE), False),  # the first step is a layer's that begins with zeros
        ((ONE, ZEROS, ONE), True),
        ((ZEROS, ZEROS, None), True),
        ((None, None, None), False),
    ],
)
def test_the_second_step_decides_where_the_optimizer_is_gone(
    grads: tuple[torch.Tensor | None, ...], seen: bool
) -> None:
    assert stepped(*grads).seen() is seen


def test_no_more_than_one_step_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[torch.Tensor] = []
    monkeypatch.setattr(zero_grads, "is_zero", looks.append)
    stepped(ONE, ONE, ONE, ONE, ONE)
    assert len(looks) == 1


def test_what_a_device_would_have_to_be_waited_for_is_left_alone() -> None:
    w = torch.ones(3, device="meta", requires_grad=True)
    optimizer, seen = torch.optim.SGD([w]), ZeroGrads()
    w.grad = torch.zeros(3, device="meta")
    for _ in range(3):
        seen.step(optimizer, [w])
    assert not seen._seen


def test_gradients_that_are_there_at_the_end() -> None:
    w = torch.ones(3, requires_grad=True)
    optimizer, seen = torch.optim.SGD([w]), ZeroGrads()
    for w.grad in (ONE, ONE, ZEROS):
        seen.step(optimizer, [w])
    assert seen.seen()


@pytest.mark.parametrize(
    ("tensor", "zero"),
    [
        (torch.zeros(40), True),
        (torch.zeros(4, 4).t(), True),
        (torch.eye(9)[8], False),
        (torch.tensor(float("nan")), False),
        (torch.zeros(0), None),
        (torch.zeros(3).to_sparse(), None),
        (torch.zeros(3, device="meta"), None),
    ],
)
def test_exactly_zero(tensor: torch.Tensor, zero: bool | None) -> None:
    assert is_zero(tensor) is zero
