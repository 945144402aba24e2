"""Tracing of lines rests in torch's own functions (Python 3.10 and 3.11), and all is told as if it had not."""

from __future__ import annotations

import gc
import sys

import pytest

from tests.capture.notebook import Notebook

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="lines are traced in another way")

START = """
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
    def forward(self, x):
        h = F.gelu(self.a(x))
        h = F.dropout(h, 0.0)
        return F.softplus(h) * 2
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        y = g * 1
        return y * 2
net, deep = nn.Linear(3, 1), nn.Sequential(nn.Linear(3, 3), Block(), nn.Tanh(), nn.Linear(3, 1))
opt = torch.optim.Adam([*net.parameters(), *deep.parameters()], lr=0.01)
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(8, 3), torch.randn(8, 1)
kept = []
def loss_of(model):
    out = model(x)
    return F.mse_loss(out, y)
"""
STEP = "    loss = loss_of(deep)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    kept = [loss]\n"

PROGRAMS = {
    "plain": "for i in range(60):\n" + STEP,
    "nested loops": "for epoch in range(6):\n  for i in range(10):\n" + STEP,
    "while": "i = 0\nwhile i < 40:\n" + STEP + "    i += 1\n",
    "function": "def fit(n):\n  for i in range(n):\n" + STEP + "  return kept\nkept = fit(40)",
    "comprehension": "kept = [F.mse_loss(m(x), y) for m in (net, deep) for _ in range(3)]\nsum(kept).backward()",
    "generator": "def losses():\n    for i in range(30):\n        yield F.mse_loss(deep(x), y)\n"
    "for loss in losses():\n    loss.backward()\n    opt.step()\n    kept.append(loss)",
    "optimizers": "for i in range(30):\n  for o, m in ((opt, deep), (sgd, net)):\n    loss = loss_of(m)\n    o.zero_grad()\n"
    "    loss.backward()\n    o.step()\n    kept.append(loss)",
    "a branch": "for i in range(60):\n    h = F.relu(net(x))\n    if i == 40:\n        h = F.silu(h)\n        kept.append(h)\n"
    "    h.sum().backward()",
    "shapes change": "for i in range(60):\n    h = x\n    for _ in range(1 + (i > 40)):\n        h = F.gelu(h * net.weight)\n"
    "    kept = [h]\n    h.sum().backward()",
    "second backward": "for i in range(60):\n" + STEP + "    if i == 40: loss.backward()",
    "an error": "for i in range(60):\n" + STEP + "    if i == 40: F.mse_loss(deep(x), y, reduction='what')",
    "an error in a module": "for i in range(60):\n" + STEP + "    if i == 40: deep(y)",
    "in place": "for i in range(60):\n    h = F.softplus(net(x))\n    out = torch.exp(h)\n    if i == 40: out.add_(1)\n"
    "    F.mse_loss(out, y).backward()",
    "caught": "for i in range(30):\n    try:\n        F.mse_loss(net(x), y, reduction='what')\n    except ValueError as error:\n"
    "        kept.append(F.softplus(net(x) * 2))\n        net.weight.data.mul_(1.0)\n    after = F.silu(net(x))\n    kept.append(after)",
    "caught by who calls": "def risky():\n    a = net(x)\n    return F.mse_loss(a, y, reduction='what')\n"
    "for i in range(5):\n    try:\n        risky()\n    except ValueError:\n        kept.append(net(x) + 1)\n    kept.append(net(x) - 1)",
    "checkpoint": "def part(h):\n    h = F.gelu(h)\n    return h * 3\nfor i in range(30):\n"
    "    h = checkpoint(part, net(x), use_reentrant=False)\n    kept.append(h)\n    h.sum().backward()",
    "closure": "lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=3)\ndef closure():\n    lbfgs.zero_grad()\n"
    "    loss = F.mse_loss(net(x), y)\n    kept.append(loss)\n    loss.backward()\n    return loss\n"
    "for i in range(5):\n    lbfgs.step(closure)",
    "decorated": "@torch.enable_grad()\ndef inside(h):\n    h = F.gelu(h)\n    return h.exp()\n"
    "for i in range(30):\n    kept.append(inside(net(x)))",
    "hooks": "def hook(module, args, out):\n    kept.append(F.softplus(out))\nnet.register_forward_hook(hook)\n"
    "def pre(module, args):\n    kept.append(args[0] * net.weight)\nnet.register_forward_pre_hook(pre)\n"
    "for i in range(20):\n    F.mse_loss(net(x), y).backward()",
    "custom": "for i in range(20):\n    h = Double.apply(net(x))\n    (g,) = torch.autograd.grad(h.sum(), net.weight, create_graph=True)\n"
    "    kept.append(h)\n    kept.append(g)",
    "from elsewhere": "from functools import reduce\ndef both(a, b):\n    c = F.gelu(b)\n    return a + c * net.weight.sum()\n"
    "for i in range(10):\n    kept.append(reduce(both, [x, x, x]))\n    kept += map(F.silu, [net(x), net(x)])",
    "clipped": "for i in range(30):\n    loss_of(deep).backward()\n    nn.utils.clip_grad_norm_(deep.parameters(), 1.0)\n    opt.step()",
}


def told(source: str, *, rests: bool) -> tuple:
    """All that is told of a program, and how often tracing rested."""
    made, rested = Notebook(), 0
    lines = made.tracker.provenance.lines
    may_rest = lines.may_rest

    def counted(frame):
        nonlocal rested
        yes = rests and may_rest(frame)
        rested += yes
        return yes

    lines.may_rest = counted
    made.run(START)
    made.run(source)
    assert sys.gettrace() is None
    made.run("last = F.mse_loss(deep(x), y)")
    made.tracker.stop()
    assert list(made.tracker.problems) == []
    snapshot = made.tracker.snapshot()
    order = sorted(range(len(snapshot)), key=lambda i: snapshot.seq[i])
    nodes = [(snapshot.name_of(i), snapshot.place_of(i), snapshot.module_of(i)) for i in order if snapshot.seq[i] >= 0]
    calls = [
        (call.n, call.place, call.result, call.failed_node, call.failed_place, call.freed_by, call.executed_count)
        for call in made.tracker.calls
    ]
    writes = [(write.place, sorted(write.paths), write.by) for write in made.tracker.writes]
    errors = [str(error) for error in made.errors]
    return nodes, calls, writes, errors, rested


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_told_of_as_if_every_function_were_traced(name):
    *resting, rested = told(PROGRAMS[name], rests=True)
    gc.collect()
    *traced, never = told(PROGRAMS[name], rests=False)
    assert resting == traced
    assert never == 0


def test_in_a_loop_few_functions_are_heard_of():
    *_, rested = told(PROGRAMS["plain"], rests=True)
    assert rested >= 60 * 4


def test_an_error_in_a_torch_function_leaves_no_tracing_behind():
    made = Notebook()
    made.run(START)
    made.run("for i in range(3):\n    F.mse_loss(x, y, reduction='what')")
    held = made.tracker.provenance.lines.state().resting
    assert held is None and sys.gettrace() is None
    made.errors.clear()
    gc.collect()
    assert sys.gettrace() is None
    made.tracker.stop()
