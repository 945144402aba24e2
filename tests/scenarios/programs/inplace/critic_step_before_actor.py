# title: The critic is stepped between the two backwards that both go through it
# kind: inplace
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
pi, Q = nn.Linear(2, 2), nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
opt_q = torch.optim.Adam(Q.parameters(), 1e-2)
opt_p = torch.optim.Adam(pi.parameters(), 1e-2)
# %%
for obs in torch.randn(2, 6, 2):
    act = pi(obs)
    value = Q(torch.cat([obs, act], 1))
    q_loss, p_loss = (value - 1).pow(2).mean(), -value.mean()
    opt_q.zero_grad()
    q_loss.backward(retain_graph=True)
    opt_q.step()
    opt_p.zero_grad()
    p_loss.backward()
    opt_p.step()
