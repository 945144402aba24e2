"""A local variable that piles up is cut in its function: the same name in another function is another variable."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

CELL = """
net = nn.Linear(2, 1)
def join(a, b):
    return torch.add(a, b)
def train():
    f = torch.zeros(1)
    for _ in range(9):
        loss = net(torch.ones(3, 2)).exp().sum()
        loss.backward()
        MADE
    return f.item()
class Newton:
    def step(self, f, n):
        for _ in range(n):
            newf = f + 1
            f = newf
        return f
"""


@pytest.mark.parametrize("made", ["f = join(f, loss)", "f, g = join(f, loss), 0", "for f in [join(f, loss)]: pass"])
def test_the_same_name_in_a_function_that_did_not_run_is_not_edited(made):
    cell = CELL.replace("MADE", made)
    (found,) = findings_of(cell, "train()")
    assert found.headline.startswith("Graphs piled up in `f` while `train` ran")
    assert all(edit.start[0] < 12 for fix in found.fixes for edit in fix.edits)
    if made.startswith("f = "):
        assert not findings_of(apply(cell, found.fixes[0].edits), "train()")
