# verified:
# never says: w | backward
# %%
import torch
class Config:
    name = None
w = torch.randn(3, requires_grad=True)
# %%
print(w.grad, Config.name.lower())
