"""The body of a loop may stand in a function of its own, which binds the variables of the code around it."""

from told import findings_of

CHECKPOINTED = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4).requires_grad_(False)
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    def forward(self, ids):
        h = self.embed(ids)
        def one(block):
            nonlocal h
            h = checkpoint(block, h, use_reentrant=True)
        for block in self.blocks:
            one(block)
        return h
net = Net()
loss = net(torch.tensor([1, 2])).sum()
loss.backward()
"""
FILLED = """
import torch
from torch import nn
cell = nn.Linear(3, 3)
def encode(given):
    outs = torch.zeros(4, 3, requires_grad=True)
    def one(i):
        outs[i] = cell(given[i])
    for i in range(4):
        one(i)
    return outs
encode(torch.randn(4, 3))
"""
GLOBAL = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4))
    def forward(self, given):
        return self.inner(given)
net = Net()
def one(step):
    global logits
    logits = net(torch.randn(8, 3))
    logits.pow(2).sum().backward()
    if step:
        drawn = torch.distributions.Categorical(logits=logits).sample()
        nn.functional.cross_entropy(logits, drawn).backward()
for step in range(2):
    one(step)
"""
CACHED = """
import torch
from torch import nn
from torch.nn.utils import parametrize
class Scaled(nn.Module):
    def forward(self, weight):
        return weight / weight.norm()
net = nn.Linear(3, 1)
parametrize.register_parametrization(net, "weight", Scaled())
def one(step):
    loss = net(torch.randn(4, 3)).pow(2).sum()
    loss.backward()
with parametrize.cached():
    for step in range(3):
        one(step)
"""


def test_what_the_function_binds_outside_of_it_is_followed():
    found = findings_of(CHECKPOINTED)[0]
    assert "use_reentrant" in found.fixes[0].text
    assert found.cause is not None or found.made_at is not None
    assert [edit.new for edit in found.fixes[0].edits]


def test_a_buffer_of_the_function_around():
    found = findings_of(FILLED)[0]
    assert found.fixes[0].id == "plain_buffer"
    assert [edit.start[0] for edit in found.fixes[0].edits] == [6]


def test_a_global_variable_got_its_name_in_the_function():
    found = findings_of(GLOBAL)[0]
    assert "`logits` was built in In[1], line 13" in found.text


def test_what_keeps_a_cache_is_named():
    found = findings_of(CACHED)[0]
    assert "parametrize.cached()" in found.text
