# verified:
# says: `self.calls += 1` (In[1], line 11) changes `self.calls` | 3 tensors, before it were 6
# never says: not explained
# %%
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        for _ in range(2 if self.calls == 1 else 1):
            x = self.fc(x).tanh()
        return x
block = Block()
# %%
loss = checkpoint(block, torch.randn(2, 3, requires_grad=True), use_reentrant=False).sum()
loss.backward()
