"""Gradients of many, some of which require none."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

START = """net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
net[0].requires_grad_(False)
loss = net(torch.ones(3)).sum()"""
SGD = "with torch.no_grad():\n    for p, g in zip(PARAMS, grads):\n        p -= 0.1 * g"
ONLY = "[p for p in net.parameters() if p.requires_grad]"


def fixed(cell: str, *more: str) -> str:
    (found,) = findings_of(START, cell, *more)
    fix = found.fixes[0]
    assert fix.id == "differentiate_some" and fix.edits
    text = apply(cell, fix.edits)
    assert not findings_of(START, text, *more)
    return text


def test_what_is_read_beside_the_gradients_stays_in_step():
    cell = "grads = torch.autograd.grad(loss, net.parameters())\n" + SGD.replace("PARAMS", "net.parameters()")
    text = fixed(cell)
    assert f"grad(loss, {ONLY})" in text and f"zip({ONLY}, grads)" in text


@pytest.mark.parametrize("made", ["list(net.parameters())", "[p for p in net.parameters()]"])
def test_a_list_is_made_of_what_requires_grad(made):
    cell = f"params = {made}\ngrads = torch.autograd.grad(loss, params)\n" + SGD.replace("PARAMS", "params")
    assert f"params = {ONLY}\ngrads = torch.autograd.grad(loss, params)" in fixed(cell)


def test_a_list_that_was_made_before_the_freezing_is_read_anew():
    cell = "params = list(net.parameters())\nnet[1].bias.requires_grad = False\n"
    cell += "grads = torch.autograd.grad(net(torch.ones(3)).sum(), params)\n" + SGD.replace("PARAMS", "params")
    text = fixed(cell)
    assert "params = list(net.parameters())" in text and text.count("[p for p in params if p.requires_grad]") == 2


def test_what_has_a_list_of_its_own_keeps_the_places():
    cell = (
        "old = [torch.zeros_like(p) for p in net.parameters()]\ngrads = torch.autograd.grad(loss, net.parameters())\n"
    )
    cell += "for v, g in zip(old, grads):\n    v.add_(g)"
    text = fixed(cell)
    assert "grads = tuple(next(found) if x.requires_grad else None for x in asked)" in text
    assert "    if g is None:\n        continue\n    v.add_(g)" in text


def test_a_dict_of_parameters_holds_only_what_requires_grad():
    cell = """def adapt(net):
    fast = dict(net.named_parameters())
    for _ in range(2):
        cost = torch.func.functional_call(net, fast, (torch.ones(3),)).sum()
        grads = torch.autograd.grad(cost, list(fast.values()), create_graph=True)
        fast = {k: v - 0.1 * g for (k, v), g in zip(fast.items(), grads)}
    return fast
adapt(net)"""
    assert "fast = {k: p for k, p in net.named_parameters() if p.requires_grad}" in fixed(cell)


def test_a_backward_of_a_function_gives_none_in_their_places():
    cell = """class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, x, *params):
        ctx.run, ctx.x, ctx.params = run, x, list(params)
        with torch.no_grad():
            return run(x)
    @staticmethod
    def backward(ctx, g):
        x = ctx.x.detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.run(x)
        grads = torch.autograd.grad(
            y,
            [x] + ctx.params,
            g,
        )
        return (None,) + grads"""
    call = "x = torch.ones(3, requires_grad=True)\nCheckpoint.apply(net, x, *net.parameters()).sum().backward()"
    call += "\nassert x.grad is not None and net[1].weight.grad is not None and net[0].weight.grad is None"
    text = fixed(cell, call)
    assert "asked = [x] + ctx.params" in text and "[x for x in asked if x.requires_grad]" in text
