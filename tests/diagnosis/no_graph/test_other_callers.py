"""A function is called in several places: what other callers than that of the loss pass to it is not behind the loss."""

from told import findings_of

FIELD = """
ROTATE = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Linear(2, 1)
    def slope(self, state):
        with torch.enable_grad():
            state = state if state.requires_grad else state.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.energy(state).sin().sum(), state)
        return slope
    def forward(self, state):
        return self.slope(state) @ ROTATE.T
field = Field()
"""
ROLLED = """
@torch.no_grad()
def roll(state):
    middle = state + 0.5 * field(state)
    return state + field(middle)
roll(torch.ones(1, 2))
"""
TRAINED = """
opt = torch.optim.Adam(field.parameters())
data, want = torch.ones(8, 2), torch.ones(8, 2)
def epoch():
    for idx in torch.arange(8).split(4):
        loss = nn.functional.mse_loss(field(data[idx]), want[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
epoch()
"""


def test_the_call_that_led_to_the_loss_counts():
    (found,) = (one for one in findings_of(FIELD, ROLLED, TRAINED) if one.kind == "no_grad")
    assert "no_grad" not in found.text and "(slope,)" not in found.headline
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (1, 10)
    assert [fix.id for fix in found.fixes] == ["create_graph"]
