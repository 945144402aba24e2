"""Totals that objects keep with their graphs, several objects of one class."""

import pytest
from told import findings_of

PROGRAM = """
class Metric:
    def __init__(self):
        self.total = 0.0
    def update(self, pred):
        LINE
net = nn.Linear(2, 1)
metrics = {"a": Metric(), "b": Metric()}
for _ in range(10):
    out = net(torch.ones(1, 2)).exp()
    for one in metrics.values():
        one.update(out)
    out.sum().backward()
"""


@pytest.mark.parametrize(
    "line", ["self.total = self.total + pred.square().sum()", "self.total = pred.square().sum() + self.total"]
)
def test_what_is_added_is_detached_where_it_is_added(line):
    (found,) = findings_of(PROGRAM.replace("LINE", line))
    fix = found.fixes[0]
    assert (fix.id, fix.verified, fix.at[1], [edit.new for edit in fix.edits]) == ("detach", True, 6, [".detach()"])
    assert f"Write `{line.replace('.sum()', '.sum().detach()')}`" in fix.text
    assert found.stored_at.line == 6
