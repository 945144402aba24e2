# verified: detach
# says: Iteration 1 reaches the same node through `queue[0]`.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
enc = nn.Linear(4, 4)
queue = []
opt = torch.optim.SGD(enc.parameters(), lr=.1)
# %%
for i in range(4):
    k = enc(torch.randn(2, 4))
    neg = torch.cat(queue) if queue else torch.zeros(0, 4)
    sim = (k @ torch.cat([k, neg]).T).logsumexp(1).mean()
    opt.zero_grad(); sim.backward(); opt.step()
    queue.append(k); queue = queue[-2:]
