# verified:
# says: `check` raised RuntimeError while the gradients were computed.
# never says: `loss` | no_grad
# %%
import torch
w = torch.randn(3, requires_grad=True)
def check(g):
    raise RuntimeError("layer 3 does not require grad: check the configuration")
y = w * 3
y.register_hook(check)
loss = y.sum()
# %%
loss.backward()
