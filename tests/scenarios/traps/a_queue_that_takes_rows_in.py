# verified: detach
# says: Store it detached: `self.queue.extend(one.detach() for one in k)` (In[2], line 9).
# %%
from collections import deque
import torch, torch.nn as nn
torch.manual_seed(0)
# %%
class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.queue = nn.Linear(3, 4), nn.Linear(3, 4), deque(maxlen=6)
    def forward(self, x):
        q, k = self.q(x), self.k(x).tanh()
        negatives = torch.stack(list(self.queue)) if self.queue else k[:0]
        scores = torch.cat([(q * k).sum(1, keepdim=True), q @ negatives.t()], 1)
        self.queue.extend(k)
        return scores.logsumexp(1).mean() - scores[:, 0].mean()
# %%
net = Contrast()
opt = torch.optim.SGD(net.parameters(), 0.1)
for step in range(5):
    loss = net(torch.randn(2, 3))
    opt.zero_grad()
    loss.backward()
    opt.step()
