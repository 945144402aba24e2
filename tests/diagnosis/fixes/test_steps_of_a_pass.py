"""A state that is kept from pass to pass is cut between passes, and not between the steps of one."""

import ast

import pytest
import torch
from told import findings_of

LOOP = """
opt = torch.optim.SGD(net.parameters(), 0.1)
for batch in range(3):
    loss = net(torch.randn(4, 5, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
NEURON = """
class Neuron(nn.Module):
    def __init__(self, size, rest=0.0):
        super().__init__()
        self.lin = nn.Linear(2, size)
        self.rest = rest
        self.reset()
    def reset(self):
        self.u = self.rest
    def forward(self, seq):
        out = []
        for x in seq:
            self.u = 0.5 * self.u + self.lin(x)
            out.append(torch.tanh(self.u))
        return torch.stack(out)
"""
PROGRAMS = {
    "several objects, a number at first": NEURON + "net = nn.Sequential(Neuron(2), Neuron(3))" + LOOP,
    "registered by name": NEURON.replace("        self.reset()\n", "        self.remember('u', 0.0)\n").replace(
        "    def forward",
        "    def remember(self, name, value):\n        setattr(self, name, value)\n    def forward",
    )
    + "net = nn.Sequential(Neuron(2), Neuron(3))"
    + LOOP,
    "a loop over the parts in each step": """
class Cell(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin, self.h = nn.Linear(n + 3, 3), torch.zeros(5, 3)
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([Cell(2), Cell(3)])
    def forward(self, seq):
        for x in seq:
            for cell in self.cells:
                cell.h = torch.tanh(cell.lin(torch.cat([x, cell.h], 1)))
                x = cell.h
        return x
net = Stack()
"""
    + LOOP,
    "steps in the caller": """
class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.mem = nn.Linear(2, 2), None
    def forward(self, x):
        if self.mem is None:
            self.mem = torch.zeros(5, 2)
        self.mem = 0.9 * self.mem + self.lin(x)
        return torch.sigmoid(self.mem)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Leaky(), Leaky()
    def forward(self, seq):
        found = []
        for t in range(len(seq)):
            found.append(self.b(self.a(seq[t])))
        return torch.stack(found)
net = Net()
"""
    + LOOP,
}


def run(program, edits):
    lines = program.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda one: one.start, reverse=True):
        (first, a), (last, b) = edit.start, edit.end
        text = lines[first - 1] if first <= len(lines) else ""
        end = lines[last - 1][b:] if last <= len(lines) else ""
        lines[first - 1 : last] = [text[:a] + edit.new + end]
    text = "".join(lines)
    ast.parse(text)
    space = {"torch": torch, "nn": torch.nn, "__name__": "__main__"}
    exec(text, space)
    return space


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_of_one_pass_still_train_each_other(name):
    program = PROGRAMS[name]
    finding = next(one for one in findings_of(program) if one.kind == "second_backward")
    fix = finding.fixes[0]
    assert fix.id == "detach" and fix.edits, fix
    net = run(program, fix.edits)["net"]
    steps = torch.randn(4, 5, 2, requires_grad=True)
    out = net(steps)
    (out[-1] if out.dim() == 3 else out).sum().backward()
    assert steps.grad[0].abs().max() > 0, fix.edit


CHUNKS = """
def chunks(net, xs):
    state = torch.zeros(1, 4, 3)
    for x in xs.split(5):
        out, state = net(x, state)
        yield out
net = nn.GRU(2, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
for out in chunks(net, torch.randn(15, 4, 2)):
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_each_step_of_a_generator_is_a_pass_of_what_takes_its_values():
    """The backward is outside of the generator's loop; a cut before that loop would cut nothing."""
    finding = next(one for one in findings_of(CHUNKS) if one.kind == "second_backward")
    assert finding.fixes[0].id == "detach"
    run(CHUNKS, finding.fixes[0].edits)
