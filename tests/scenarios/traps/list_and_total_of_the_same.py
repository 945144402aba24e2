# verified: detach detach
# says: `meter.sum` refers to the graph that made it: 32 nodes
# %%
import torch
w = torch.ones(3, requires_grad=True)
class Meter:
    def __init__(self): self.sum, self.vals = 0, []
    def update(self, v, n=1):
        self.sum += v * n
        self.vals.append(v)
meter = Meter()
# %%
for step in range(8):
    loss = (w * w).sum()
    loss.backward()
    meter.update(loss, 2)
