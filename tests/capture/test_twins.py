"""Methods that have a twin with a derivative, known from the object while they run."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import distributions as D

from graphwidget.capture.flow.twins import twins_now

ONES = torch.ones(3)
OF_CLASSES = ("OneHotCategorical", "OneHotCategoricalStraightThrough")


def twins_while(draw: object) -> tuple[tuple[str, str], ...]:
    """What is known in the last operation of torch that a draw calls."""
    found: list[tuple[tuple[str, str], ...]] = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            found.append(twins_now(sys._getframe()))
            return func(*args, **(kwargs or {}))

    with Watch():
        draw()  # type: ignore[operator]
    return found[-1]


@pytest.mark.parametrize(
    ("made", "twins"),
    [
        (lambda: D.Normal(ONES, ONES), (("sample", "rsample"),)),
        (lambda: D.Independent(D.Normal(ONES, ONES), 1), (("sample", "rsample"),)),
        (lambda: D.TransformedDistribution(D.Normal(ONES, ONES), [D.TanhTransform()]), (("sample", "rsample"),)),
        (lambda: D.Categorical(ONES), (("sample", ""),)),
        (lambda: D.Bernoulli(ONES / 2), (("sample", ""),)),
    ],
)
def test_the_object_says_whether_it_has_one(made: object, twins: tuple[tuple[str, str], ...]) -> None:
    assert twins_while(made().sample) == twins  # type: ignore[operator]


def test_a_subclass_that_is_made_in_the_same_way_has_it() -> None:
    one = D.OneHotCategorical(ONES)
    for dist in (one, D.Independent(one, 0)):
        found = twins_while(dist.sample)
        assert OF_CLASSES in found and ("sample", "rsample") in found


def test_what_only_has_the_names_is_no_twin() -> None:
    class Memory:
        def sample(self) -> torch.Tensor:
            with torch.no_grad():
                return ONES * 2

        def rsample(self) -> None: ...

    assert twins_while(Memory().sample) == ()
