"""What a module writes to in code of torch's is noticed at the line that calls the module, also in a function."""

from told import findings_of, record_of

EMBEDDED = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(30, 6, max_norm=1.0)
        nn.init.normal_(self.items.weight)
        self.proj = nn.Linear(6, 6, bias=False)
    def forward(self, at):
        everything = self.proj(self.items.weight)
        return self.items(at) @ everything.t()
def main():
    net = Net()
    for at in torch.randint(0, 30, (2, 16)):
        net(at).sum().backward()
main()
"""


def test_the_line_that_looks_up_rows():
    found = findings_of(EMBEDDED)[0]
    assert "`return self.items(at) @ everything.t()` (In[1], line 12" in found.text
    assert [edit.new for edit in found.fixes[0].edits] == [".clone()"]


def test_a_sequence_of_modules_that_is_called():
    text = EMBEDDED.replace("self.items(at) @", "self.rows(at) @").replace(
        "self.proj =", "self.rows = nn.Sequential(self.items)\n        self.proj ="
    )
    found = findings_of(text)[0]
    assert found.modified_at is not None and found.modified_at.line == 13


def test_a_module_that_writes_to_nothing():
    text = EMBEDDED.replace(", max_norm=1.0", "")
    assert [write.by for write in record_of(text).writes] == ["nn.init.normal_(self.items.weight)"] * 2
