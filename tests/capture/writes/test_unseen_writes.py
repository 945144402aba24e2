"""Writes that PyTorch does not count: each finding corresponds to a gradient that differs without the write."""

import re

import pytest
import torch
from cells import Notebook

from graphwidget.diagnosis.diagnose import diagnose

SETUP = """
w = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
v = torch.tensor([3.0, 1.0, -2.0], requires_grad=True)
held, named = [v, w], {'w': w}
net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
with torch.no_grad():
    for p in net.parameters():
        p.fill_(0.5)
x = torch.ones(2, 3)
conv = torch.nn.Conv1d(1, 1, 2).requires_grad_(False)
deep = torch.nn.Conv1d(1, 1, 2)
def change(t):
    t.data.mul_(3)
def never():
    w.data.zero_()
raw = w.data
other = [p.detach().clone() * 2 for p in net.parameters()]
slow = {name: p.clone() * 2 for name, p in net.state_dict().items()}
def average_(slow, fast):
    slow.mul_(0.9).add_(fast, alpha=0.1)
"""
MARK = "  # write"  # at the end of the lines that write
PROGRAMS = {
    "between": "y = (w ** 3).sum()\nw.data.mul_(2)  # write\ny.backward()",
    "by an operator": "y = (w ** 3).sum()\nw.data += 1  # write\ny.backward()",
    "an element": "y = (w ** 3).sum()\nw.data[1] = 7.  # write\ny.backward()",
    "another tensor": "y = (w ** 3).sum()\nw.data = torch.zeros(3)  # write\ny.backward()",
    "into": "y = (w ** 3).sum()\ntorch.mul(v.data, 2, out=w.data)  # write\ny.backward()",
    "by an initialiser": "y = (w ** 3).sum()\ntorch.nn.init.zeros_(w.data)  # write\ny.backward()",
    "in a list": "y = (w ** 3).sum()\nheld[1].data.mul_(2)  # write\ny.backward()",
    "in a dict": "y = (w ** 3).sum()\nnamed['w'].data.mul_(2)  # write\ny.backward()",
    "in a function": "y = (w ** 3).sum()\nchange(w)  # write\ny.backward()",
    "through what shares its memory": "y = (w ** 3).sum()\nraw.mul_(2)  # write\ny.backward()",
    "in a loop": "y = (w * v).prod()\nfor p in (v, w):\n    p.data.mul_(2)  # write\ny.backward()",
    "of a module": "y = net(x).sum()\nnet[1].weight.data.mul_(2)  # write\ny.backward()",
    "in passes of two loops": """
for epoch in range(2):
    for i in range(3):
        y = (w ** 3).sum()
        w.data.mul_(0.5)  # write
        y.backward()""",
    "in more passes than are remembered": """
for i in range(700):
    y = (w ** 3).sum()
    w.data.mul_(1.001)  # write
    y.backward()""",
    "of what was retained": """
y = (w ** 3).sum()
y.backward(retain_graph=True)
w.data.mul_(2)  # write
y.backward()""",
    # These make no gradient wrong: no node had saved the tensor they write to, or no later call used it.
    "before": "w.data.mul_(1)  # write\ny = (w ** 3).sum()\ny.backward()",
    "before, and behind something else": """
h = w * 2
w.data.mul_(1)  # write
y = (w ** 3).sum() + h.sum()
y.backward()""",
    "after": "y = (w ** 3).sum()\ny.backward()\nw.data.mul_(2)  # write",
    "of what is not saved": "y = (w + v).sum()\nw.data.mul_(2)  # write\ny.backward()",
    "of another": "y = (w ** 3).sum()\nv.data.mul_(2)  # write\ny.backward()",
    "of what is saved for another leaf": "y = (w * v.detach()).sum()\nw.data.mul_(2)  # write\ny.backward()",
    "of the first layer": "y = net(x).sum()\nnet[0].weight.data.mul_(2)  # write\ny.backward()",
    "of what a frozen convolution was given": "y = conv(w[None]).sum()\nw.data.mul_(2)  # write\ny.backward()",
    "of what a convolution was given": "y = deep(v[None]).sum()\nv.data.mul_(2)  # write\ny.backward()",
    "of what was pooled": "y = torch.max_pool1d(w[None], 2).sum()\nw.data.mul_(2)  # write\ny.backward()",
    "of a copy": "y = (w ** 3).sum()\nw.clone().data.mul_(2)  # write\ny.backward()",
    "of a copy that reads it": "y = (w ** 3).sum()\nv.data.mul_(0.9).add_(w.data, alpha=0.1)  # write\ny.backward()",
    "an average": "y = (w ** 3).sum()\nv.data.lerp_(w.data, 0.1)  # write\ny.backward()",
    "a target network": "y = net(x).sum()\nfor p, t in zip(net.parameters(), other):\n    t.data.copy_(p.data)\ny.backward()",
    "an average of a state dict": """
y = net(x).sum()
for name, t in slow.items():
    t.mul_(0.5).add_(net.state_dict()[name].data, alpha=0.5)
y.backward()""",
    "averages at once": """
y = net(x).sum()
torch._foreach_lerp_([t.data for t in other], [p.data for p in net.parameters()], 0.1)
y.backward()""",
    "by a function of the program": "y = (w ** 3).sum()\naverage_(v.data, w.data)\ny.backward()",
    "weights that are tied": "y = (w ** 3).sum()\ntied = torch.nn.Parameter(w.data)\nv.data.copy_(tied.data)\ny.backward()",
    "the one that is averaged": "y = (w ** 3).sum()\nw.data.mul_(0.9).add_(v.data, alpha=0.1)  # write\ny.backward()",
    "the second of two": "y = (w ** 3).sum()\nw.data.add_(w.data)  # write\ny.backward()",
    "by an initialiser of a bound": "y = (w ** 3).sum()\ntorch.nn.init.constant_(w.data, 2)  # write\ny.backward()",
    "a step of another": """
for i in range(3):
    y = (w ** 3).sum()
    w.grad = None
    v.data.add_(w.data)
    y.backward()""",
    "not run": "y = (w ** 3).sum()\nif False:\n    w.data.mul_(2)  # write\ny.backward()",
    "defined and not called": "y = (w ** 3).sum()\ndef f():\n    w.data.mul_(2)  # write\ny.backward()",
    "steps by hand": """
for epoch in range(2):
    for i in range(3):
        y = (w ** 3).sum() * (w * v).sum() * 1e-3
        w.grad = v.grad = None
        y.backward()
        for p in (w, v):
            p.data -= 0 * p.grad  # write""",
}


def gradients(program, apart):
    """Return the gradients of the leaves, and the findings of the last call."""
    notebook = Notebook()
    try:
        program = program.replace(MARK, "").strip()
        cells = [SETUP, *(program.splitlines() if apart and "\n  " not in program else [program])]
        for cell in cells:
            notebook.run(cell)
        assert not notebook.errors, notebook.errors
        leaves = [notebook.namespace[name] for name in "wv"] + list(notebook.namespace["net"].parameters())
        told = [f for f in diagnose(notebook.tracker.record()) if f.kind == "silent"]
        return [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves], told
    finally:
        notebook.tracker.stop()


def without_writes(program):
    lines = program.splitlines()
    return "\n".join(re.sub(r"\S.*", "pass", line) if line.endswith(MARK) else line for line in lines)


@pytest.mark.parametrize("apart", [False, True], ids=["one cell", "a cell for each line"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_write_that_autograd_does_not_see_is_reported_where_it_makes_a_gradient_wrong(name, apart):
    program = PROGRAMS[name]
    found, told = gradients(program, apart)
    right, nothing = gradients(without_writes(program), apart)
    wrong = any(not torch.equal(a, b) for a, b in zip(found, right, strict=True))
    assert not nothing
    assert bool(told) == wrong, [finding.text for finding in told]
    writes = {line.removesuffix(MARK).strip() for line in program.splitlines() if line.endswith(MARK)}
    assert {finding.text.split("`")[1] for finding in told} <= {*writes, "t.data.mul_(3)"}


def test_what_is_built_behind_the_write_on_its_line_saved_the_new_values():
    assert gradients("w.data.mul_(2); y = (w ** 3).sum()\ny.backward()", False)[1] == []
