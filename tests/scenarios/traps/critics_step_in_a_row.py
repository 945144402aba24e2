# verified: recompute_in_loop
# %%
import torch
from torch import nn
torch.manual_seed(0)
pi = nn.Linear(3, 2)
q1, q2 = (nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)) for _ in range(2))
pi_opt = torch.optim.SGD(pi.parameters(), lr=0.1)
q_opts = [torch.optim.SGD(q.parameters(), lr=0.1) for q in (q1, q2)]
s, a = torch.randn(8, 3), torch.randn(8, 2)
# %%
act = pi(s)
policy_loss = -torch.min(q1(act), q2(act)).mean()
for opt, loss in zip(q_opts, [q(a).pow(2).mean() for q in (q1, q2)]):
    opt.zero_grad()
    loss.backward()
    opt.step()
pi_opt.zero_grad()
policy_loss.backward()
pi_opt.step()
