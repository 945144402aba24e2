# verified:
# says: `apart = torch.cdist(a, b)` (In[1], line 5) applied it | Pass `compute_mode='use_mm_for_euclid_dist'` to `cdist`
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 3)
def repulsion(a, b):
    apart = torch.cdist(a, b)
    return torch.exp(-apart).sum()
a, b = torch.randn(4, 2, requires_grad=True), torch.randn(5, 3)
force, = torch.autograd.grad(repulsion(net(a), b), a, create_graph=True)
force.square().sum().backward()
