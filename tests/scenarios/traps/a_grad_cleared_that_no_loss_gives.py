# verified:
# says: Run backward first, on something computed from `gain`.
# never says: if gain.grad is not None:
# %%
import torch
gain = torch.ones(2, requires_grad=True)
other = torch.ones(2, requires_grad=True)
# %%
for _ in range(2):
    loss = (gain.detach() * other).sum()
    gain.grad.zero_()
    loss.backward()
