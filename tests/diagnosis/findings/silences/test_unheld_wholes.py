"""What may be frozen, or given to an optimizer: modules of which no optimizer holds anything."""

import pytest
from told import findings_of

PROGRAM = """
class Encoder(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.projector = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2))
        self.scale = nn.Parameter(torch.randn(2))
    def forward(self, x):
        return self.projector(self.net(x)) * self.scale
class Learner(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.online = Encoder(net)
        self.predictor = nn.Linear(2, 2)
    def forward(self, x):
        return self.predictor(self.online(x)).pow(2).mean()
net = nn.Linear(3, 4)
learner = Learner(net)
opt = torch.optim.Adam({}, lr=1e-3)
for i in range(6):
    opt.zero_grad()
    learner(torch.randn(5, 3)).backward()
    opt.step()
"""
FROZEN = {
    "net.parameters()": {"learner.online.scale", "learner.predictor", "learner.online.projector"},
    "learner.online.projector[0].parameters()": {"net"},
}


@pytest.mark.parametrize(("held", "frozen"), FROZEN.items())
def test_what_contains_a_trained_parameter_is_not_frozen(held, frozen):
    fix = findings_of(PROGRAM.format(held))[0].fixes[0]
    told = {one for one in fix.text.split("`") if one.endswith(".requires_grad_(False)")}
    assert {one.removesuffix(".requires_grad_(False)") for one in told} == frozen


def test_what_a_second_optimizer_is_to_train_is_not_frozen():
    later = "net.parameters(), lr=0.1); second = torch.optim.SGD([learner.online.projector[1].bias]"
    texts = [fix.text for one in findings_of(PROGRAM.format(later)) for fix in one.fixes]
    assert not any("projector.requires_grad_" in text or "projector[1].requires_grad_" in text for text in texts)
