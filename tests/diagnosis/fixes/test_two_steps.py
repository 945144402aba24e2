"""Two networks that are trained in turn: where the graph between them is cut, and where it is computed again."""

import pytest
from told import findings_of

NETS = """
torch.manual_seed(0)
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(2, 4), nn.Linear(4, 1)
    def forward(self, x):
        return self.two(torch.relu(self.one(x)))
G, D = nn.Linear(3, 2), Critic()
og, od = (torch.optim.SGD(net.parameters(), 0.1) for net in (G, D))
def update(opt, loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
def loss_of(real, made):
    return D(made).mean() - D(real).mean()
"""
CRITIC_LOOP = """
for it in range(2):
    fake = G(torch.randn(5, 3))
    for k in range(2):
        update(od, loss_of(torch.randn(5, 2), fake))
"""
AFTER = {
    "cleared": "    og.zero_grad()\n    (-D(G(torch.randn(5, 3))).mean()).backward()\n    og.step()\n",
    "used": "    og.step()\n",
    "unknown": "    pass\n",
}


@pytest.mark.parametrize(("after", "first"), [("cleared", "detach"), ("used", "other"), ("unknown", "other")])
def test_a_loop_whose_gradients_nobody_uses_is_given_a_cut(after, first):
    (finding,) = findings_of(NETS, CRITIC_LOOP + AFTER[after])
    fixes = {fix.id: fix for fix in finding.fixes}
    assert fixes["detach"].verified and bool(fixes["detach"].starves) == (first != "detach")
    assert (finding.fixes[0].id == "detach") == (first == "detach")


def test_what_an_earlier_stage_has_trained_is_cut_off_behind_it():
    stage = "for _ in range(2):\n    update(og, G(torch.randn(5, 3)).pow(2).mean())\n"
    (finding,) = findings_of(NETS, stage, CRITIC_LOOP)
    assert (finding.fixes[0].id, finding.fixes[0].starves) == ("detach", ())


def test_a_function_of_the_program_is_handed_the_tensor_detached():
    step = "real, fake = torch.randn(5, 2), G(torch.randn(5, 3))\nfor _ in range(1):\n    update(od, loss_of(real, fake))\n"
    (finding,) = findings_of(NETS, step + "    update(og, -D(fake).mean())")
    assert [line for line in finding.fixes[0].edit if line[0] == "+"] == ["+ update(od, loss_of(real, fake.detach()))"]


def test_a_size_is_asked_of_the_tensor_itself():
    step = "fake = G(torch.randn(5, 3))\nd = D(fake).sum() / len(fake) / fake.shape[0]\nupdate(od, d)\n"
    (finding,) = findings_of(NETS, step + "update(og, -D(fake).mean())")
    assert "+ d = D(fake.detach()).sum() / len(fake) / fake.shape[0]" in finding.fixes[0].edit


ACTOR = """
def learn(s):
    critic_loss = D(s).pow(2).mean()
    action = G(torch.randn(5, 3))
    actor_loss = -D(action).mean()
    update(od, critic_loss)
    update(og, actor_loss)
for _ in range(2):
    learn(torch.randn(5, 2))
"""


def test_a_loss_is_computed_again_before_the_helper_is_called_with_it():
    (finding,) = findings_of(NETS, ACTOR)
    (fix, *_) = finding.fixes
    assert fix.verified and fix.at == (2, 7)  # the call of the helper, not a line of it
    assert fix.edit == (
        "+ action = G(torch.randn(5, 3))",
        "+ actor_loss = -D(action).mean()",
        "  update(og, actor_loss)",
    )


PASSES = """
for it in range(2):
    for j in range(2):
        d = D(torch.randn(5, 2)).mean()
        fake = G(torch.randn(5, 3))
        update(od, d + D(fake.detach()).mean())
    for j in range(2):
        og.zero_grad()
        loss = -D(fake).mean()
        loss.backward(retain_graph=True)
        og.step()
"""


def test_a_loop_of_steps_is_not_run_again_to_make_one_tensor():
    finding = findings_of(NETS.replace("nn.Linear(3, 2)", "nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))"), PASSES)[0]
    assert [line for line in finding.fixes[0].edit if line[0] == "+"] == ["+ fake = G(torch.randn(5, 3))"]
    assert "fake" in finding.names and "`fake` was computed before that step." in finding.text


AGENTS = """
torch.manual_seed(0)
nets = [nn.Linear(3, 2), nn.Linear(3, 2)]
opts = [torch.optim.SGD(net.parameters(), 0.1) for net in nets]
head = nn.Linear(2, 1)
x = torch.randn(4, 3)
made = []
for net in nets:
    made.append(torch.tanh(net(x)))
mean = torch.stack(made).mean(0)
for net, opt in zip(nets, opts):
    loss = head(mean).mean() + net(x).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_what_is_moved_into_a_loop_leaves_its_variables_as_they_are():
    (finding,) = findings_of(AGENTS)
    fix = next(fix for fix in finding.fixes if fix.id == "recompute_in_loop")
    assert "+ for net_ in nets:" in fix.edit and "+     made.append(torch.tanh(net_(x)))" in fix.edit


STATE = """
torch.manual_seed(0)
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.h = nn.RNNCell(3, 2), torch.zeros(1, 2)
    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h
net = Cell()
opt = torch.optim.SGD(net.parameters(), 0.1)
def train(x):
    opt.zero_grad()
    net(x).sum().backward()
    opt.step()
"""


def test_a_step_that_computes_its_own_loss_is_mended_itself_and_not_one_of_its_callers():
    (finding,) = findings_of(STATE, "x = torch.randn(1, 3)\ntrain(x)\ntrain(x)\ntrain(x)")
    assert finding.fixes[0].id == "detach" and finding.fixes[0].at[0] == 1


def test_what_a_loop_goes_through_is_made_again_before_the_loop():
    pair = "def pair():\n    each = [D(G(torch.randn(5, 3))).sum() for _ in range(2)]\n    return each, each[0] * each[1]\n"
    step = "losses, other = pair()\nother.backward()\nod.step()\nfor k, loss in zip(range(2), losses):\n    loss.backward()\n"
    (finding,) = findings_of(NETS, pair, step)
    again = next(fix for fix in finding.fixes if fix.id == "recompute_in_loop")
    assert again.edit == ("+ losses, other = pair()", "  for k, loss in zip(range(2), losses):")
