"""The second step of an inner loop differentiates by weights with which its loss was not computed."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

OWN = """
class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(1, 3)), nn.Parameter(torch.zeros(1))
    def forward(self, x, weights=None):
        w, b = weights if weights is not None else (self.w, self.b)
        return nn.functional.linear(x, w, b)
"""
ADAPT = """
def adapt(net, x):
    fast = list(net.parameters())
    for _ in range(2):
        loss = net(x).pow(2).mean()
        grads = torch.autograd.grad(loss, fast, create_graph=True)
        fast = [p - 0.1 * g for p, g in zip(fast, grads)]
    return fast
"""
KEYED = """
def update(module, error, named):
    grads = torch.autograd.grad(error, list(named.values()), create_graph=True)
    return {k: p - 0.1 * g for (k, p), g in zip(named.items(), grads)}
def inner(module, x):
    weights = dict(module.named_parameters())
    for _ in range(2):
        out = module(x)
        weights = update(module, out.pow(2).mean(), weights)
    return weights
"""


def new(finding, fix, text):
    assert finding.kind == "refused" and finding.tensor is not None
    return text_edit.new_text(text, finding.fixes[fix].edits).strip()


def test_the_module_is_given_the_weights_by_the_argument_that_it_has_for_them():
    (found,) = findings_of(OWN, ADAPT, "adapt(Learner(), torch.ones(4, 3))")
    assert new(found, 0, ADAPT) == "loss = net(x, weights=fast).pow(2).mean()"
    assert found.tensor == "fast" and (found.cause.cell, found.cause.line) == (2, 5)


def test_a_module_without_such_an_argument_is_called_with_them_by_torch():
    (found,) = findings_of(ADAPT, "adapt(nn.Linear(3, 1), torch.ones(4, 3))")
    call = "torch.func.functional_call(net, dict(zip(dict(net.named_parameters()), fast)), (x,))"
    assert new(found, 0, ADAPT) == f"loss = {call}.pow(2).mean()" and len(found.fixes) == 1


def test_the_weights_have_the_name_of_the_function_that_calls_the_module():
    known = "from torch.func import functional_call"
    (found,) = findings_of(known, KEYED, "inner(nn.Sequential(nn.Linear(3, 1)), torch.ones(4, 3))")
    assert new(found, 0, KEYED) == "out = functional_call(module, weights, (x,))"
    assert found.tensor == "weights" and "`weights` was computed from these" in found.text


@pytest.mark.parametrize("asked", ["w * 2", "[w * 2]"])
def test_a_tensor_that_no_earlier_call_led_to_is_no_such_weight(asked):
    cell = f"net, w = nn.Linear(3, 1), torch.ones(3, requires_grad=True)\nloss = net(torch.ones(3)).sum()\ntorch.autograd.grad(loss, {asked})"
    (found,) = findings_of(cell)
    assert "was computed from these" not in found.text
