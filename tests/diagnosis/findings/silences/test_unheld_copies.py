"""An optimizer has the parameters of a module, and backward reaches those of a copy of it."""

import pytest
from told import findings_of

TRAINER = """
import copy
class Trainer:
    def __init__(self, model, optimizer):
        {}
        self.optimizer = optimizer
    def train(self):
        for i in range(4):
            loss = self.model(torch.randn(5, 3)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
def main():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=1e-4)
    trainer = Trainer(model, optimizer)
    trainer.train()
main()
"""
SAME_VALUES = "self.model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))"


def told(made):
    return [one for one in findings_of(TRAINER.format(made)) if "never trained" in one.headline]


@pytest.mark.parametrize("made", ["self.model = copy.deepcopy(model).to('cpu')", "self.model = copy.deepcopy(model)"])
def test_the_copy_is_told_with_its_line(made):
    (finding,) = told(made)
    assert "`self.model` is a copy of `model`" in finding.text and "copy.deepcopy(model)" in finding.text
    (fix,) = finding.fixes
    assert fix.text.startswith("Make the optimizer of the parameters of `self.model`, or do not copy")
    assert [edit.new for edit in fix.edits] == ["model"] and fix.choice


def test_the_whole_is_named_where_backward_reaches_a_part():
    program = TRAINER.format("self.model = copy.deepcopy(model)").replace("self.model(torch", "self.model.part(torch")
    made = "model = nn.Module(); model.part = nn.Sequential("
    (finding, *_) = findings_of(program.replace("model = nn.Sequential(", made))
    assert "`self.model` is a copy of `model`" in finding.text


def test_equal_values_without_a_known_copy_are_told_without_a_line():
    (finding,) = told(f"{SAME_VALUES}; self.model.load_state_dict(model.state_dict())")
    assert "`self.model` is a copy of `model`" in finding.text and finding.fixes[0].edits == ()


def test_another_module_of_the_same_shapes_is_no_copy():
    assert not any("is a copy" in finding.text for finding in told(SAME_VALUES))


def test_what_trains_beside_its_copy_is_not_confused_with_it():
    code = """
import copy
net = nn.Linear(3, 1)
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), 1e-9)
for i in range(4):
    x = torch.randn(5, 3)
    opt.zero_grad()
    (net(x) - target(x + 1)).pow(2).mean().backward()
    opt.step()
"""
    assert not any("is a copy" in finding.text for finding in findings_of(code))
