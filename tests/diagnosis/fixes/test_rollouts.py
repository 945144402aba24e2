"""What a rollout made once, and every epoch on it reads: states, and buffers under other names."""

from told import findings_of

AGENT = """class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head, self.data = nn.GRUCell(3, 4), nn.Linear(4, 1), []
        self.opt = torch.optim.SGD(self.parameters(), lr=0.1)
    def act(self, x, h):
        return self.cell(x, h)
    def step(self, x, state):
        return self.cell(x, sum(one for one in state))
    def batch(self):
        xs, hs = zip(*self.data)
        self.data = []
        return torch.stack(xs), hs[-1]
    def train_net(self):
        x, h = self.batch()
        state = (h, h.detach())
        for _ in range(3):
            loss = self.head(self.step(x[0], state)).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()"""
RUN = """agent = Agent()
h = torch.zeros(2, 4)
for _ in range(2):
    h = agent.act(torch.ones(2, 3), h)
    agent.data.append((torch.ones(2, 3), h))
agent.train_net()"""


def test_a_state_of_a_rollout_is_cut_before_the_epochs_on_it() -> None:
    (found,) = findings_of(AGENT, RUN)
    (edit,) = found.fixes[0].edits
    assert found.fixes[0].verified and edit.start[0] == 17 and edit.new.startswith("state = (state[0].detach()")


POLICY = """class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.saved, self.rewards = nn.Linear(3, 2), [], []
policy = Policy()
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
def act():
    policy.saved.append(policy.net(torch.ones(3)).log_softmax(0)[0])
def finish():
    saved = policy.saved
    loss = torch.stack([-one * reward for one, reward in zip(saved, policy.rewards)]).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {end}
def main():
    for _ in range(3):
        for _ in range(2):
            act()
            policy.rewards.append(1.0)
        finish()"""


def test_a_buffer_with_a_local_name_is_emptied() -> None:
    (found,) = findings_of(POLICY.format(end="del policy.rewards[:]"), "main()")
    fix = found.fixes[0]
    assert fix.id == "clear_buffer" and "`saved.clear()`" in fix.text and "rewards" not in fix.text


def test_what_is_filled_beside_it_is_emptied_by_the_name_it_has() -> None:
    (found,) = findings_of(POLICY.format(end="pass"), "main()")
    fix = found.fixes[0]
    assert fix.id == "clear_buffer" and "policy.rewards.clear()" in fix.text
