"""Parameters for which a custom Function returns None."""

import pytest
from told import findings_of, said

PROGRAM = """
class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias
    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        of_weight = grad.t() @ x if ctx.needs_input_grad[INDEX] else None
        return grad @ weight, of_weight, grad.sum(0)
weight, bias = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.zeros(2))
opt = torch.optim.SGD([weight, bias], 0.1)
for _ in range(8):
    opt.zero_grad()
    loss = Linear.apply(torch.ones(4, 3), weight, bias).sum() MORE
    loss.backward()
    opt.step()
"""


def program(index, more=""):
    return PROGRAM.replace("INDEX", index).replace("MORE", more)


def test_the_function_and_its_return_are_named():
    (found,) = findings_of(program("0"))
    assert found.headline == "`weight` has had no gradient in any step of the optimizer."
    assert "through `Linear` alone, and its `backward` (In[1], line 11) returned None for it" in found.text
    assert (found.cause.line, found.names) == (11, ("weight", "Linear"))


@pytest.mark.parametrize("quiet", [program("1"), program("0", "+ weight.sum()")])
def test_where_a_gradient_comes_nothing_is_said(quiet):
    assert said(quiet) == []
