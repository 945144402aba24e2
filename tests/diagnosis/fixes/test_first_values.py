"""What was computed once of a leaf that trains: detached it would stay at its first value, so it is computed again."""

import pytest
from told import findings_of

AGENT = """
class Agent:
    def __init__(self, tuning=True):
        self.policy = nn.Linear(3, 1)
        self.opt = torch.optim.Adam(self.policy.parameters(), lr=0.1)
        {}
    def update(self, x):
        log_pi = self.policy(x)
        loss = (self.alpha * log_pi).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        alpha_loss = -(self.log_alpha * (log_pi + 1.0).detach()).mean()
        self.alpha_opt.zero_grad()
        alpha_loss.backward()
        self.alpha_opt.step()
agent = Agent()
for i in range(3):
    agent.update(torch.randn(5, 3))
"""
MADE = [
    "self.log_alpha = torch.zeros(1, requires_grad=True)",
    "self.alpha = self.log_alpha.exp()",
    "self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=0.1)",
]
PLACES = {
    "always": ("\n        ".join(MADE), "before each use"),
    "in a branch": ("if tuning:\n            " + "\n            ".join(MADE), "again behind `self.alpha_opt.step()`"),
}


@pytest.mark.parametrize(("made", "where"), PLACES.values(), ids=PLACES)
def test_it_is_computed_again_in_each_pass(made, where):
    (finding,) = findings_of(AGENT.format(made))
    first, second = finding.fixes
    assert (first.id, second.id) == ("recompute_in_loop", "detach")
    assert where in first.text and [edit.new.strip() for edit in first.edits] == ["self.alpha = self.log_alpha.exp()"]
    assert "`agent.alpha` then stays at its first value, while `agent.log_alpha` trains" in second.price


def test_an_advantage_of_a_critic_is_a_constant_of_the_passes():
    code = """
actor, critic = nn.Linear(3, 2), nn.Linear(3, 1)
states, returns = torch.randn(6, 3), torch.randn(6, 1)
a_opt, c_opt = (torch.optim.SGD(net.parameters(), 0.1) for net in (actor, critic))
advantage = returns - critic(states)
for i in range(3):
    a_opt.zero_grad()
    loss = -(advantage * actor(states).log_softmax(-1)).mean()
    loss.backward()
    a_opt.step()
    c_opt.zero_grad()
    (returns - critic(states)).pow(2).mean().backward()
    c_opt.step()
"""
    finding, *_ = findings_of(code)
    assert not any("first value" in fix.price for fix in finding.fixes)


SHARED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.made = {}
    def forward(self, x):
        {}
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = net(torch.randn(5, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("made", "used"),
    [
        ("nn.functional.normalize(self.fc.weight, dim=1).t()", "return self.fc(x).sigmoid() @ self.made"),
        ("self.fc.weight.t().softmax(0)", "return self.fc(x) @ self.made"),
        ("self.fc.weight.norm(dim=1)", "return self.fc(x) * self.made"),
    ],
    ids=["normalised", "behind the view that its layer takes", "a scale"],
)
def test_what_is_made_of_a_weight_that_the_pass_uses_too_is_computed_again(made, used):
    (finding,) = findings_of(SHARED.format(made, used))
    assert [fix.id for fix in finding.fixes[:2]] == ["recompute_in_loop", "detach"]
    assert [edit.new.strip() for edit in finding.fixes[0].edits] == [f"self.made = {made}"]


def test_what_each_pass_computes_anew_is_compared_with_what_it_was():
    code = SHARED.format("self.fc.weight.norm()", "return self.fc(x) + (self.fc.weight.norm() - self.made).exp()")
    (finding,) = findings_of(code.replace("- self.made)", "* self.made)"))
    assert finding.fixes[0].id == "detach"
