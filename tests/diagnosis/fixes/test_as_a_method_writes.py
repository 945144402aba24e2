"""A cut inside a method is written with `self`, where that is the object."""

import pytest
from told import findings_of

PROGRAM = """
class State:
    def __init__(self, h):
        self.h = h
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRUCell(2, 3)
    def forward(self, x, state):
        return State(self.rnn(x, state.h))
class Learner:
    def __init__(self):
        self.cell, self.now = Cell(), State(torch.zeros(1, 3))
    def learn(self):
        for _ in range(3):
            self.now = self.cell(torch.ones(1, 2), self.now)
            loss = self.now.h.sum()
            loss.backward()
"""


@pytest.mark.parametrize(
    ("objects", "new"),
    [
        ("learner = Learner()\n", "self.now.h = self.now.h.detach()"),
        ("other, learner = Learner(), Learner()\n", "learner.now.h = learner.now.h.detach()"),
    ],
)
def test_the_only_object_of_a_class_is_self_in_its_methods(objects, new):
    """What makes the state is another class, so it does not show whose it is."""
    (found,) = findings_of(PROGRAM + objects + "learner.learn()")
    assert found.fixes[0].edits[0].new.strip() == new
