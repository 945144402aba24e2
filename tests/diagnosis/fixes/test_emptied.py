"""Containers that each pass fills: all that belong together are emptied, and no others."""

import pytest
from told import findings_of

POLICY = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
opt = torch.optim.SGD(net.parameters(), 0.1)
class Agent:
    def __init__(self):
        self.probs, self.rewards, self.seen = [], [], []
    def act(self, s):
        p = net(s).log_softmax(-1)
        self.probs.append(p[0])
        return p
agent = Agent()
buffer = {"prob": [], "reward": []}
"""
OBJECT = """
for episode in range(2):
    for t in range(3):
        agent.act(torch.randn(3))
        agent.rewards.append(float(t))
        agent.seen.append(t)
    print(len(agent.seen))
    returns = torch.tensor(agent.rewards)
    loss = -(torch.stack(agent.probs) * returns).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
KEYED = """
for episode in range(2):
    for t in range(3):
        buffer["prob"].append(net(torch.randn(3)).log_softmax(-1)[0])
        buffer["reward"].append(float(t))
    loss = -(torch.stack(buffer["prob"]) * torch.tensor(buffer["reward"])).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def fix_of(*cells):
    (finding,) = findings_of(*cells)
    return finding.fixes[0]


def new(fix):
    return [line for line in fix.edit if line.startswith("+")]


def test_what_the_loss_reads_beside_the_carriers_is_emptied_with_them():
    fix = fix_of(POLICY, OBJECT)
    assert fix.id == "clear_buffer" and fix.verified
    assert new(fix) == ["+ agent.probs.clear()", "+ agent.rewards.clear()"]  # `seen` is only printed


def test_of_a_dict_of_lists_each_is_emptied():
    assert new(fix_of(POLICY, KEYED)) == ["+ for each in buffer.values(): each.clear()"]


def test_a_dict_of_lists_is_emptied_in_a_function():
    body = "\n".join(f"    {line}" for line in KEYED.splitlines())
    assert new(fix_of(POLICY, f"def train():{body}\ntrain()")) == ["+ for each in buffer.values(): each.clear()"]


@pytest.mark.parametrize(
    "changed",
    [
        OBJECT.replace("agent.rewards.append", "extern.append"),  # a list that cannot be written like the other
        OBJECT.replace("    for t in range(3):", "    print(agent.probs)\n    for t in range(3):"),  # read before
    ],
)
def test_in_doubt_nothing_is_emptied(changed):
    kept = changed.replace("torch.tensor(agent.rewards)", "torch.tensor(extern if extern else agent.rewards)")
    assert fix_of(f"{POLICY}\nextern = []", kept).id != "clear_buffer"


EACH = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
losses = net(x).pow(2).mean(1)
"""


def test_a_loop_over_losses_runs_one_backward():
    fix = fix_of(f"{EACH}\nfor l in losses:\n    opt.zero_grad()\n    l.backward()\n    opt.step()\n")
    assert new(fix) == ["+ opt.zero_grad()", "+ sum(losses).backward()", "+ opt.step()"]


def test_a_loop_over_tensors_made_once_makes_them_again_in_each_pass():
    loop = "for n, z in enumerate(codes):\n    loss = (z * n).sum()\n    loss.backward()\n    opt.step()\n"
    fix = fix_of(f"{EACH}\ncodes = torch.tanh(net(x))\n{loop}")
    assert (fix.id, fix.verified) == ("recompute_in_loop", True)
    assert new(fix) == ["+ for n in range(len(codes)):", "+     codes = torch.tanh(net(x))", "+     z = codes[n]"]
