"""What a line wrote before a node was made has modified nothing that the node saved, in whatever loop it stood."""

import pytest
from told import findings_of, record_of

from graphwidget.diagnosis.fixes.in_place.step_later import adds_to_its_gradients, step_later

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head, self.value = nn.Linear(2, 3), nn.Linear(3, 3), nn.Linear(3, 1)
        for name, parameter in self.named_parameters():
            if "weight" in name:
                nn.init.orthogonal_(parameter)
    def forward(self, x):
        h = self.head(self.trunk(x).tanh())
        return self.value(h), h.tanh()
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
"""
TURN = """
def turn(x):
    value, out = net(x)
    opt.zero_grad()
    value.pow(2).mean().backward(retain_graph=True)
    opt.step()
    out.mean().backward()
{}
for j in range(2):
    turn(torch.randn(4, 2))
"""
WARM_UP = """
for k in range(5):
    opt.zero_grad()
    net(torch.randn(4, 2))[0].mean().backward()
    opt.step()
"""


@pytest.mark.parametrize("before", ["", WARM_UP], ids=["set up", "warmed up"])
def test_a_loop_before_the_node_is_no_loop_of_the_node(before):
    finding, *_ = findings_of(NET + before + TURN.format(""))
    assert finding.modified_by == "opt.step()" and "So did" not in finding.text
    assert not any("orthogonal_" in fix.text for fix in finding.fixes)


def test_a_line_that_made_the_node_and_went_on_has_written_since():
    code = """
def f(y):
    z = (y * y).sum()
    y.add_(1)
    return z
w = torch.ones(3, requires_grad=True)
for i in range(2):
    y = w * 2
    z = f(y)
    z.backward()
"""
    (finding,) = findings_of(code)
    assert finding.modified_by == "y.add_(1)"


def step_of(behind):
    """The fix of the step between both calls."""
    record = record_of(NET + TURN.format(behind))
    call = record.calls[-1]
    write = next(one for one in record.writes if one.optimizer)
    return step_later(record, call, call.graph, write, adds_to_its_gradients(call.graph, call, write))


def test_a_step_that_the_block_makes_again_is_left_out():
    fix = step_of("    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()")
    assert "leave it out, as line 22 makes the step for both" in fix.text and [e.new for e in fix.edits] == [""]


def test_a_step_whose_gradients_are_cleared_before_the_next_one_moves():
    fix = step_of("    opt.zero_grad()\n    opt.step()")
    assert "move it behind" in fix.text and "opt.step()" in "".join(e.new for e in fix.edits)
