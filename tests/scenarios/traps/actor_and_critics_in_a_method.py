# verified: recompute_in_loop
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 2)
    def forward(self, s):
        return torch.tanh(self.net(s))
class Agent:
    def __init__(self):
        self.pi = Policy()
        self.q = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        self.pi_opt = torch.optim.Adam(self.pi.parameters())
        self.q_opt = torch.optim.Adam(self.q.parameters())
    def learn(self, s, a):
        self.act = self.pi(s)
        self.gain = self.q(self.act).mean()
        self.q_loss = self.q(a).pow(2).mean()
        self.q_opt.zero_grad()
        self.q_loss.backward()
        self.q_opt.step()
        self.pi_opt.zero_grad()
        (-self.gain).backward()
        self.pi_opt.step()
# %%
agent = Agent()
for it in range(2):
    agent.learn(torch.randn(8, 3), torch.randn(8, 2))
