"""A pass that writes its graph into what the next one reads: that tensor carries it, and the write is where to cut."""

import pytest
from cells import Notebook
from told import findings_of

from graphwidget.diagnosis.diagnose import diagnose

SETUP = """net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
weights, batch = torch.ones(8), torch.rand(4, 3)
class Memory:
    def __init__(self): self.kept, self.parts = torch.ones(8), {'a': torch.ones(8)}
    def tell(self, index, error):
        self.kept[index] = error.abs()
memory = Memory()
"""
LOOP = """for step in range(4):
    index = torch.randint(0, 8, (4,))
    error = net(batch).mean(1)
    loss = ({read}[index] * error ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {write}
"""


@pytest.mark.parametrize(
    "read, write, cut, line",
    [
        ("weights", "weights[index] = error.abs() + 1", "weights[index] = (error.abs() + 1).detach()", (2, 8)),
        ("memory.kept", "memory.tell(index, error)", "self.kept[index] = error.abs().detach()", (1, 7)),
        ("memory.parts['a']", "memory.parts['a'][:4] = error", "memory.parts['a'][:4] = error.detach()", (2, 8)),
        ("weights", "weights.index_copy_(0, index, error)", "index_copy_(0, index, error.detach())", (2, 8)),
        ("weights", "weights[:4].copy_(error)", "weights[:4].copy_(error.detach())", (2, 8)),
        ("weights", "weights.mul_(0.9).add_(error.sum())", "weights.mul_(0.9).add_(error.sum().detach())", (2, 8)),
    ],
)
def test_what_a_pass_writes_into_a_tensor_carries_its_graph(read: str, write: str, cut: str, line: tuple) -> None:
    (found,) = findings_of(SETUP, LOOP.format(read=read, write=write))
    assert found.kind == "second_backward" and found.carriers[0] == read and "written in place" in found.text
    assert found.cause is not None and (found.cause.cell, found.cause.line) == line
    fix = found.fixes[0]
    assert fix.id == "detach" and fix.verified and cut in fix.edit[1]


HANDED = """class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mem, self.stats = nn.Linear(3, 4), 0.0, {"mean": 0.0}
    def forward(self, x):
        return torch.tanh(self.enc(x)) + self.mem + self.stats["mean"]
    def remember(self, h):
        KEEP
agent = Agent()
opt = torch.optim.SGD(agent.parameters(), lr=0.01)
"""
RUN = """def run():
    for step in range(4):
        h = agent(torch.rand(5, 3))
        loss = h.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        agent.remember(h)
run()
"""


@pytest.mark.parametrize(
    "keep, carrier, cut",
    [
        ("self.mem = h.mean(0, keepdim=True)", "agent.mem", "self.mem = h.mean(0, keepdim=True).detach()"),
        ("m = h.mean(); self.stats['mean'] = m", "agent.stats['mean']", "self.stats['mean'] = m.detach()"),
    ],
)
def test_what_a_method_makes_after_the_call_carries_the_graph_of_the_pass(keep: str, carrier: str, cut: str) -> None:
    (found,) = findings_of(HANDED.replace("KEEP", keep), RUN)
    assert found.kind == "second_backward" and found.carriers[0] == carrier
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 8)
    fix = found.fixes[0]
    assert fix.id == "detach" and fix.verified and cut in fix.edit[1]


def test_a_variable_that_a_line_behind_the_call_makes_is_stored_detached() -> None:
    (found,) = findings_of(SETUP, LOOP.format(read="weights", write="weights = weights + error.sum()"))
    assert found.carriers[0] == "weights" and "was built in In[2], line 8" in found.text
    assert found.fixes[0].verified and found.fixes[0].edit[1] == "+ weights = (weights + error.sum()).detach()"


def test_what_a_cell_left_for_its_next_run_is_cut_before_that_uses_it() -> None:
    notebook = Notebook()
    notebook.run(
        "from torch import nn\nnet = nn.Linear(3, 4)\nopt = torch.optim.SGD(net.parameters(), lr=0.01)\nbase = torch.zeros(())"
    )
    step = (
        "out = net(torch.rand(5, 3)).mean(1)\nloss = (out - base).pow(2).mean()\nopt.zero_grad()\nloss.backward()\n"
        "opt.step()\nbase = 0.9 * base + 0.1 * out.mean()"
    )
    assert notebook.run(step, cell_id="step") is None and notebook.run(step, cell_id="step") is not None
    (found,) = diagnose(notebook.tracker.record())
    assert found.carriers[0] == "base" and found.cause is not None and found.cause.line == 6
    fix = found.fixes[0]
    assert fix.id == "detach" and fix.verified
    assert fix.edit == ("+ base = base.detach()", "  loss = (out - base).pow(2).mean()"), (
        "not before `base` is made anew"
    )
