# verified:
# says: `torch.ones(4)`, has the shape [4], and `y` has [3] | for equal weights `torch.ones_like(y)`
# never says: Leave `
# %%
import torch
x = torch.ones(3, requires_grad=True)
y = x * 2
# %%
torch.autograd.backward(y, torch.ones(4))
