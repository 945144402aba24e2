"""The table of functions without a derivative says what torch does."""

import pytest
import torch

from graphwidget.diagnosis.no_graph.cutting import NOT_DIFFERENTIABLE

OF_TWO = {"bucketize", "isin", "searchsorted", "isclose", "equal"} | {
    *("eq", "ne", "lt", "le", "gt", "ge", "greater", "greater_equal", "less", "less_equal", "not_equal"),
    *("logical_and", "logical_or", "logical_xor"),
}


def called(name: str, values: torch.Tensor) -> object:
    """Call a function of the table with values that require grad."""
    if name == "sample":
        return torch.distributions.Categorical(values).sample()
    if name == "one_hot":
        return torch.nn.functional.one_hot(values.long())
    if name == "bincount":
        return torch.bincount(values.long(), values.detach())
    function = getattr(torch.Tensor, name, None) or getattr(torch, name)  # `torch.long` is a type
    more = (2,) if name == "multinomial" else (values.detach(),) if name in OF_TWO else ()
    return function(values, *more)


@pytest.mark.parametrize("name", NOT_DIFFERENTIABLE)
def test_its_result_has_no_graph(name):
    values = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    assert not getattr(called(name, values), "requires_grad", False)
