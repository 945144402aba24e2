"""Gradients of many, some of which require none."""

import pytest
import torch
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
    cell = "old = [torch.zeros(2, 3), torch.zeros(2), torch.zeros(1, 2), torch.zeros(1)]\ngrads = torch.autograd.grad(loss, net.parameters())\n"
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


def all_fixed(*cells: str) -> str:
    """The last but one cell, edited by the first fix: the last one, which raised, runs on."""
    found = next(one for one in findings_of(*cells) if one.severity == "error")
    assert found.fixes[0].id == "differentiate_some"
    text = apply(cells[-2], found.fixes[0].edits)
    assert not [one for one in findings_of(*cells[:-2], text, cells[-1]) if one.severity == "error"]
    space: dict[str, object] = {"torch": torch, "nn": torch.nn, "__name__": "__main__"}
    for cell in (*cells[:-2], text, cells[-1]):
        exec(cell, space)
    return text


def test_an_attribute_is_made_of_what_requires_grad_and_so_are_the_names_beside_it():
    cell = """class Fisher:
    def __init__(self, net):
        self.net, = net,
        self.names = [n for n, _ in net.named_parameters()]
        self.params = tuple(net.parameters())
        self.count = sum(p.numel() for p in net.parameters())
        self.sums = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
    def gradients(self, x):
        return torch.autograd.grad(self.net(x).sum(), self.params)
    def add(self, x):
        for name, g in zip(self.names, self.gradients(x)):
            self.sums[name] += g ** 2"""
    text = all_fixed(START, cell, "fisher = Fisher(net)\nfisher.add(torch.ones(3))\nassert fisher.sums['1.bias'] == 1")
    assert "self.names = [n for n, p in net.named_parameters() if p.requires_grad]" in text
    assert "self.params = tuple(p for p in net.parameters() if p.requires_grad)" in text
    assert "self.count = sum(p.numel() for p in net.parameters())" in text


def test_a_vector_that_comes_from_another_function_stays_in_step():
    cell = """def hvp(loss, params, v):
    g = torch.autograd.grad(loss, params, create_graph=True)
    return torch.autograd.grad(sum((a * b).sum() for a, b in zip(g, v)), params, materialize_grads=True)
def power(net, loss):
    params = list(net.parameters())
    v = [torch.ones_like(p) for p in net.parameters()]
    for _ in range(2):
        v = [h + 1 for h in hvp(loss(), params, v)]
    return v"""
    text = all_fixed(START, cell, "assert len(power(net, lambda: net(torch.ones(3)).pow(2).sum())) == 2")
    assert "params = [p for p in net.parameters() if p.requires_grad]" in text
    assert "v = [torch.ones_like(p) for p in net.parameters() if p.requires_grad]" in text


def test_pieces_of_a_flat_gradient_stay_in_step():
    cell = """def flat_grad(loss, model):
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, model.parameters())])
def step(model, vector):
    at = 0
    with torch.no_grad():
        for p in model.parameters():
            p -= vector[at : at + p.numel()].view_as(p)
            at += p.numel()"""
    text = all_fixed(START, cell, "step(net, flat_grad(net(torch.ones(3)).sum(), net))")
    assert text.count("[p for p in model.parameters() if p.requires_grad]") == 2


@pytest.mark.parametrize(
    "given", ["params or list(net.parameters())", "list(net.parameters()) if params is None else params"]
)
def test_a_default_is_made_of_what_requires_grad(given):
    cell = f"""def norms(loss, params=None):
    params = {given}
    found = []
    found.append(torch.autograd.grad(loss, params))
    return [g.norm() for g in found[0]]"""
    assert "[p for p in net.parameters() if p.requires_grad]" in all_fixed(
        START, cell, "assert len(norms(net(torch.ones(3)).sum())) == 2"
    )


def test_what_is_numbered_stays_in_step():
    cell = """KEPT = dict(net.named_parameters())
momentum = [torch.zeros_like(p) for p in net.parameters()]
def grads_of(loss):
    return torch.autograd.grad(loss, KEPT.values())
def step(loss):
    gs = grads_of(loss)
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            momentum[i].add_(gs[i])
            p -= momentum[i]"""
    text = all_fixed(START, cell, "step(net(torch.ones(3)).sum())")
    assert "KEPT = {k: p for k, p in net.named_parameters() if p.requires_grad}" in text
    assert "[torch.zeros_like(p) for p in net.parameters() if p.requires_grad]" in text


def test_what_is_frozen_is_named():
    cell = "torch.autograd.grad(net(torch.ones(3)).sum(), [*net.parameters()])"
    (found,) = findings_of(START, cell)
    assert "`net[0].weight`" in found.text and found.tensor == "net[0].weight"
