"""What is written between a forward and its backward: the write moves, or goes to a tensor of its own."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

NETS = """
torch.manual_seed(0)
def make():
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
net, old = make(), make()
opt = torch.optim.SGD(net.parameters(), 0.1)
"""
LOADED = """
def update(x):
    for epoch in range(2):
        ratio = net(x) / (1 + old(x).exp())
        loss = ratio.pow(2).mean()
        old.load_state_dict(net.state_dict())
        opt.zero_grad()
        loss.backward()
        opt.step()
update(torch.ones(3, 2))
"""
AVERAGED = """
class Teacher:
    def __init__(self, net):
        self.net = net
    def train(self, data):
        for x in data:
            loss = (net(x) - self.net(x)).pow(2).mean()
            with torch.no_grad():
                for mine, other in zip(self.net.parameters(), net.parameters()):
                    mine.mul_(0.9).add_(other, alpha=0.1)
            opt.zero_grad()
            loss.backward()
            opt.step()
Teacher(old).train(torch.ones(2, 3, 2))
"""


def moved(program):
    finding = next(one for one in findings_of(NETS, program) if one.kind == "inplace")
    return finding.fixes[0]


@pytest.mark.parametrize(("program", "write"), [(LOADED, "old.load_state_dict"), (AVERAGED, "mine.mul_")])
def test_the_write_moves_behind_the_backward_of_the_same_function(program, write):
    fix = moved(program)
    assert (fix.id, fix.verified) == ("zero_grad_or_step_order", True)
    new = text_edit.apply(program, fix.edits)
    assert new.index("loss.backward()") < new.index(write) < new.index("opt.step()")
    assert sorted(new.split()) == sorted(program.split())
    findings = findings_of(NETS, new)
    assert not [one for one in findings if one.severity == "error"], findings


def test_what_the_next_line_uses_is_written_where_it_stands():
    used = LOADED.replace(
        "        opt.zero_grad()\n", "        loss = loss + old(x).detach().mean()\n        opt.zero_grad()\n"
    )
    assert not moved(used).edits


HOOKED = """
emb = nn.Embedding(5, 4)
emb.weight.requires_grad_(False)
emb.register_forward_hook(lambda module, given, out: out.requires_grad_(True))
head = nn.Linear(4, 4)
"""


@pytest.mark.parametrize(
    ("write", "new"),
    [
        ("h += head(torch.ones(4))", "+ h = h + head(torch.ones(4))"),
        ("h.add_(head(torch.ones(4)))", "+ h = h.add(head(torch.ones(4)))"),
        ("for i in range(2):\n        h[i] = head(torch.ones(4))", "+ h = h.clone()"),
    ],
)
def test_a_leaf_that_a_hook_has_made_is_not_written_to(write, new):
    program = f"def embed(ids):\n    h = emb(ids)\n    {write}\n    return h\nembed(torch.arange(3)).sum().backward()\n"
    (finding,) = findings_of(HOOKED, program)
    assert new in finding.fixes[0].edit and "requires_grad=True" not in finding.fixes[0].text


@pytest.mark.parametrize(
    "program",
    [
        "def fill(h):\n    h += head(torch.ones(4))\nh = emb(torch.arange(3))\nfill(h)\n",
        "bank = {'h': emb(torch.arange(3))}\ndef fill():\n    h = bank['h']\n    h += head(torch.ones(4))\nfill()\n",
    ],
)
def test_what_others_have_is_not_replaced_for_one(program):
    (finding,) = findings_of(HOOKED, program)
    assert finding.fixes[0].id == "clone_before_inplace" and not finding.fixes[0].edits
