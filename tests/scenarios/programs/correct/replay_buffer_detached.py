# title: Q-learning with a replay buffer of plain tensors and a target net
# kind: ok
# truth: measured.json
# %%
import random
import torch
from torch import nn
torch.manual_seed(0); random.seed(0)
q, target = nn.Linear(3, 2), nn.Linear(3, 2)
target.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), 1e-2)
memory = []
# %%
s = torch.zeros(3)
for t in range(10):
    a = q(s).argmax().item()
    s2 = torch.randn(3)
    memory.append((s, a, float(s2[0]), s2))
    s = s2
    if len(memory) >= 4:
        batch = random.sample(memory, 4)
        S, A, R, N = zip(*batch)
        with torch.no_grad():
            goal = torch.tensor(R) + 0.9 * target(torch.stack(N)).max(1).values
        now = q(torch.stack(S)).gather(1, torch.tensor(A)[:, None]).squeeze(1)
        opt.zero_grad()
        nn.functional.smooth_l1_loss(now, goal).backward()
        opt.step()
        if t % 5 == 0:
            target.load_state_dict(q.state_dict())
