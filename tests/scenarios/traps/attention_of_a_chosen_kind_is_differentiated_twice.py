# verified:
# says: `mixed = F.scaled_dot_product_attention(q, k, v)` (In[1], line 13) applied it | `sdpa_kernel([SDPBackend.FLASH_ATTENTION])` (In[2], line 4) chose it
# never says: `slope, = torch.autograd.grad(energy, place, create_graph=True)` (In[2], line 6) applied it
# %%
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
torch.manual_seed(0)
class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Linear(3, 12)
        self.out = nn.Linear(4, 1)
    def forward(self, place):
        q, k, v = self.parts(place).view(1, 1, -1, 12).chunk(3, -1)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.out(mixed).sum()
# %%
field = Field()
step = torch.optim.SGD(field.parameters(), lr=0.01)
place = torch.randn(5, 3, requires_grad=True)
with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
    energy = field(place)
slope, = torch.autograd.grad(energy, place, create_graph=True)
loss = (slope - 1).square().mean()
step.zero_grad()
loss.backward()
step.step()
