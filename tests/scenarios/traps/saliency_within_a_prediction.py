# verified:
# says: `@torch.inference_mode()` of `predict` (In[1], line 7) is around it
# never says: enable_grad | must require grad | Nothing that
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 1)
def saliency(x):
    x = x.clone().requires_grad_(True)
    score = net(x).sum()
    return torch.autograd.grad(score, x)[0].abs()
@torch.inference_mode()
def predict(x):
    return net(x), saliency(x)
# %%
predict(torch.randn(4, 3))
