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


BEHIND = """
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate, power):
        ctx.save_for_backward(x, gate)
        return x * gate
    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        of_x = of_gate = None
        if ctx.needs_input_grad[0]:
            of_x = grad * gate
        WRITTEN
        return RETURNED
body, gate, x = nn.Linear(3, 4), GATE, torch.randn(5, 3)
opt = torch.optim.SGD([*body.parameters(), *gate.parameters()], 0.1)
for _ in range(4):
    opt.zero_grad()
    loss = (Gate.apply(body(x), FORM, 2) MORE).pow(2).mean()
    loss.backward()
    STEP
"""


def behind(form="gate(x)", returned="of_x, of_gate, None", written="pass", gate="nn.Linear(3, 4)", more="", step=""):
    words = {"FORM": form, "RETURNED": returned, "WRITTEN": written, "GATE": gate, "MORE": more}
    text = BEHIND.replace("STEP", step + "opt.step()")
    for word, value in words.items():
        text = text.replace(word, value)
    return text


SCALE = "nn.ParameterList([nn.Parameter(torch.ones(4))])"


@pytest.mark.parametrize(
    ("program", "starved"),
    [
        (behind(), "`gate.bias` and `gate.weight`"),
        (behind("torch.sigmoid(gate(x)) * 2"), "`gate.bias` and `gate.weight`"),
        (behind(returned="grad * gate, None, None"), "`gate.bias` and `gate.weight`"),
        (behind(returned="tuple([of_x, of_gate, None])"), "`gate.bias` and `gate.weight`"),
        (behind("gate[0].exp()", gate=SCALE), "`gate[0]`"),
    ],
)
def test_what_lies_behind_an_input(program, starved):
    (found,) = findings_of(program)
    assert found.headline.startswith(starved) and found.cause.line == 14
    assert "returned None for its input `gate`, which is computed from" in found.text
    assert "return a gradient for `gate`" in found.fixes[0].text


@pytest.mark.parametrize(
    "quiet",
    [
        behind(written="of_gate = grad * x"),
        behind(returned="grad * gate, grad * x, None"),
        behind(more="+ gate(x)"),
        behind("gate(x).detach()", more="+ gate(x) * 0.1"),
        behind("gate[0].exp()", gate=SCALE, step="gate[0].data.mul_(0.9); "),
    ],
)
def test_where_another_way_leads_there_or_the_program_writes_to_it(quiet):
    assert said(quiet) == []
