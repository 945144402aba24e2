# verified:
# says: `gate` and `new` are views of `both`, which was modified in place.
# says: `both += self.bias` (In[2], line 9) has modified `both` in place
# %%
import torch
from torch import nn
torch.manual_seed(0)
# %%
class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, 6)
        self.bias = nn.Parameter(torch.ones(6))
    def forward(self, x):
        both = torch.tanh(self.lift(x))
        gate, new = both.chunk(2, dim=1)
        both += self.bias
        return torch.sigmoid(gate) * new + both.mean()
mixer = Mixer()
# %%
loss = mixer(torch.randn(5, 4)).sum()
loss.backward()
