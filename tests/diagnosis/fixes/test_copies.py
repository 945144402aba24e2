"""A write in place that a copy at another line makes harmless."""

from told import findings_of

BLOCK = """
torch.manual_seed(0)
net = nn.Linear(4, 4)
def block(x):
    x = torch.tanh(net(x))
    out = x
    for i in range(2):
        part = x[:, 2 * i:2 * i + 2]
        out[:, 2 * i:2 * i + 2] = part * part
    return out
block(torch.randn(3, 4)).sum().backward()
"""
ITEMS = """
torch.manual_seed(0)
class Items(nn.Module):
    def __init__(self):
        super().__init__()
        self.items, self.proj = nn.Embedding(5, 3, max_norm=0.1), nn.Linear(3, 3)
    def forward(self, i):
        every = self.proj(self.items.weight)
        query = self.items(i)
        return query @ every.t()
model = Items()
"""
CALL = """
model(torch.tensor([0, 1])).sum().backward()
"""


def test_a_second_name_becomes_that_of_a_copy():
    (fix, *_) = findings_of(BLOCK)[0].fixes
    assert fix.edit == ("- out = x", "+ out = x.clone()") and fix.verified


def test_a_second_name_by_which_nodes_have_read_stays():
    read = BLOCK.replace("part = x[", "part = out[")
    assert all("out = x.clone()" not in line for fix in findings_of(read)[0].fixes for line in fix.edit)


def test_a_leaf_that_the_forward_pass_modifies_is_read_as_a_copy():
    (fix, *_) = findings_of(ITEMS, CALL)[0].fixes
    assert "+ every = self.proj(self.items.weight.clone())" in fix.edit and fix.verified


ROWS = """
torch.manual_seed(0)
net = nn.Linear(2, 2)
def attend(x):
    a = net(x).softmax(-1)
    a.mul_(2)
    a /= a.sum()
    return a
def step():
    return attend(torch.randn(3, 2)).pow(2).sum()
step().backward()
"""


def test_all_writes_since_a_node_was_made_are_known_by_their_numbers():
    (finding,) = findings_of(ROWS)
    assert "So did `a.mul_(2)`" in finding.text
    assert finding.fixes[0].verified and "+ a = a.mul(2)" in finding.fixes[0].edit
