"""``autograd.grad`` in a function that a transform runs."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

START = """import torch
from torch.func import vmap
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
def field(x, t):
    return net(torch.stack([x, t])).squeeze(-1)
xs, ts = torch.rand(5, requires_grad=True), torch.rand(5, requires_grad=True)"""
GRAD = "torch.autograd.grad"


@pytest.mark.parametrize(
    ("body", "edited"),
    [
        (
            ["u = field(x, t)", f"u_x, u_t = {GRAD}(u, (x, t), create_graph=True)", "return u_t + u_x"],
            ["u_x, u_t = torch.func.grad(field, argnums=(0, 1))(x, t)"],
        ),
        (
            ["u = field(x, t)", f"u_x = {GRAD}(u, x, create_graph=True)[0]", f"return {GRAD}(u_x, x)[0]"],
            [],  # not an assignment
        ),
        (
            ["u = field(x, t)", f"u_x = {GRAD}(u, x, create_graph=True)[0]", f"v = {GRAD}(u_x, x)[0]", "return u * v"],
            ["u = field(x, t)", "v = torch.func.grad(torch.func.grad(field))(x, t)"],
        ),
        (
            ["h = torch.stack([x, t])", "u = net(h)", f"(u_t,) = {GRAD}(u, t, torch.ones_like(u))", "return u_t"],
            ["(u_t,) = torch.func.grad(lambda t: net(torch.stack([x, t])).sum(), argnums=(0,))(t)"],
        ),
        (
            ["x.requires_grad_()", "u = field(x, t)", f"u_x = {GRAD}(u, x)[0]", "return u_x"],
            ["u_x = torch.func.grad(field)(x, t)"],
        ),
    ],
)
def test_the_derivative_is_that_of_the_function(body, edited):
    text = "def f(x, t):\n    " + "\n    ".join(body)
    (found,) = findings_of(START, text, "out = vmap(f)(xs, ts)")
    (fix,) = found.fixes
    assert fix.id == "transform_instead" and "`out = vmap(f)(xs, ts)` (In[3], line 1) is the call" in found.text
    fixed = apply(text, fix.edits)
    assert all(one in fixed for one in edited) and bool(fix.edits) == bool(edited)
    assert not edited or not findings_of(START, fixed, "out = vmap(f)(xs, ts)\nout.sum().backward()")


def test_what_only_the_derivative_was_taken_of_is_not_computed():
    text = f"def f(x, t):\n    u = field(x, t)\n    u_x = {GRAD}(u, x)[0]\n    return u_x"
    (found,) = findings_of(START, text, "out = vmap(f)(xs, ts)")
    assert "u = " not in apply(text, found.fixes[0].edits)


@pytest.mark.parametrize(("before", "call"), [("batched = vmap(f)", "batched(xs, ts)"), ("f = vmap(f)", "f(xs, ts)")])
def test_a_transform_that_was_made_before_is_named(before, call):
    text = f"def f(x, t):\n    u = field(x, t)\n    return {GRAD}(u, list(net.parameters()))[0]"
    (found,) = findings_of(START, text, before, call)
    assert "a function that `vmap` runs" in found.headline and f"`{call}` (In[4], line 1)" in found.text
    assert not found.fixes[0].edits and "functional_call" in found.fixes[0].text


def test_outside_of_a_transform_it_is_no_matter_of_transforms():
    found = findings_of(START, f"{GRAD}(torch.ones(3).sum(), xs)", "vmap(field)(xs, ts)")
    assert all("vmap" not in one.headline for one in found)
    assert not findings_of(START, "vmap(torch.func.grad(field))(xs, ts).sum().backward()")
