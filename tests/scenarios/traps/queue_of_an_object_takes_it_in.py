# verified: detach
# says: Keep it detached: `self.past.append(h.detach())`
# %%
import torch
from collections import deque
torch.manual_seed(0)
w = torch.randn(3, 3, requires_grad=True)
class Memory:
    def __init__(self): self.past = deque(maxlen=2)
    def run(self, n):
        for t in range(n):
            ctx = sum(self.past) if self.past else torch.zeros(3)
            h = torch.tanh(w @ torch.randn(3) + ctx)
            self.past.append(h)
            loss = h.pow(2).sum()
            loss.backward()
# %%
memory = Memory()
memory.run(3)
