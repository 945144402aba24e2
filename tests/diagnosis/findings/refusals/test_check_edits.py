"""Checks of PyTorch's whose cure is written into the program: it runs then, and nothing is said of it any more."""

import pytest
from told import findings_of, said

from graphwidget.diagnosis.source.edits.text_edit import apply_to

X = "x, y = torch.ones(4, 3), torch.ones(4, 1)\nnet = nn.Linear(3, 1)"
FUNCTION = (
    "class Twice(torch.autograd.Function):\n"
    "    @staticmethod\n    def forward(ctx, a):\n        ctx.mark_dirty(a)\n        return a.mul_(2)\n"
    "    @staticmethod\n    def backward(ctx, g):\n        return 2 * g"
)

# Cells that fail, and a part of what the fix writes.
CURED = {
    "QR of all columns": (
        "q, r = torch.linalg.qr(torch.randn(5, 3, requires_grad=True), mode='complete')\nr.sum().backward()",
        "'reduced'",
    ),
    "hooks of both kinds": (
        "net.register_backward_hook(print)\nnet.register_full_backward_hook(lambda *a: None)",
        "net.register_full_backward_hook",
    ),
    "a hook that writes": (
        "def keep(t):\n    return t.mul_(1)\n"
        "with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):\n    net(x).exp().sum().backward()",
        "t.mul",
    ),
    "a view detached in place": ("v = net(x)[0]\nv.detach_()", "v = v.detach()"),
    "another library": ("other = torch.from_dlpack(net.weight)", ".detach()"),
    "integers that require grad": ("k = torch.tensor([1, 2], requires_grad=True)", "dtype=torch.float32"),
    "integers of a range": ("k = torch.arange(4).requires_grad_()", ".float()"),
    "integers under a name": ("k = torch.arange(4)\nk.requires_grad_()", "k = k.float().requires_grad_()"),
    "integers as a parameter": ("net.scale = nn.Parameter(torch.arange(4))", ".float()"),
    "integers as data": ("net.weight.data = torch.arange(3).view(1, 3)", ".float()"),
    "a leaf that a Function modifies": (
        f"{FUNCTION}\nv = torch.ones(3, requires_grad=True)\nTwice.apply(v)",
        ".clone()",
    ),
    "a slope below zero": ("act = nn.LeakyReLU(-0.1, inplace=True)\nact(net(x)).sum().backward()", "False"),
    "sparse, by frequency": (
        "emb = nn.Embedding(5, 2, sparse=True, scale_grad_by_freq=True)\nemb(torch.tensor([1])).sum().backward()",
        "",
    ),
    "weight decay of a sparse gradient": (
        "emb = nn.Embedding(5, 2, sparse=True)\nopt = torch.optim.SGD(emb.parameters(), lr=0.1, weight_decay=0.1)\n"
        "emb(torch.tensor([1])).sum().backward()\nopt.step()",
        "",
    ),
    "one gradient for two roots": (
        "a, b = net(x), net(x).exp()\ntorch.autograd.grad([a, b], net.weight, grad_outputs=torch.ones_like(a))",
        "[torch.ones_like(a), torch.ones_like(b)]",
    ),
    "a generator that is used up": (
        "params = net.parameters()\nopt = torch.optim.SGD(params, lr=0.1)\nnet(x).sum().backward(inputs=params)",
        "list(net.parameters())",
    ),
    "no inputs": ("net(x).sum().backward(inputs=[])", ""),
    "a module as input": ("torch.autograd.grad(net(x).sum(), [net])", "list(net.parameters())"),
    "a module alone as input": ("torch.autograd.grad(net(x).sum(), net)", "list(net.parameters())"),
    "a number alone as root": ("torch.autograd.backward(net(x).sum().item())", "net(x).sum()"),
    "a number as root": ("torch.autograd.backward([net(x).sum().item()])", "net(x).sum()"),
    "zeros that are forbidden": (
        "torch.autograd.grad(net(x).sum(), [net.weight], allow_unused=False, materialize_grads=True)",
        "",
    ),
}


@pytest.mark.parametrize("what", CURED)
def test_the_edit_cures_it(what: str) -> None:
    cells = (X, CURED[what][0])
    (found,) = findings_of(*cells)
    (fix,) = found.fixes
    assert found.severity == "error" and fix.edits
    assert any(CURED[what][1] in edit.new for edit in fix.edits)
    mended = apply_to(dict(enumerate(cells, 1)), fix.edits)
    assert [severity for severity, _ in said(*mended.values()) if severity == "error"] == []


ADVICE = {
    "no tensor as gradient": ("net(x).backward(gradient=[1.0] * 4)", "a gradient that is no tensor"),
    "no vector": ("torch.autograd.functional.vjp(net, x)", "needs a vector"),
    "another vector": (
        "torch.autograd.functional.jvp(net, x, torch.ones(8))",
        "is not like what it is multiplied with",
    ),
    "a list of inputs": ("torch.autograd.functional.jacobian(net, [x])", "was given, or returned, something else"),
    "options apart": (
        "torch.autograd.functional.jacobian(net, x, strategy='forward-mode')",
        "two options do not go together",
    ),
    "two backwards": (
        f"{FUNCTION}\n    @staticmethod\n    def vjp(ctx, g):\n        return g\nTwice.apply(net(x)).sum().backward()",
        "both a `backward` and a `vjp`",
    ),
}


@pytest.mark.parametrize("what", ADVICE)
def test_what_has_no_certain_edit_is_explained(what: str) -> None:
    found = findings_of(X, ADVICE[what][0])
    assert found and ADVICE[what][1] in found[0].headline and not found[0].unexplained, found
