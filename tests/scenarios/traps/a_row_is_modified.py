# verified:
# says: modifies `rows[0]` in place
# %%
import torch
x = torch.randn(3, 4, requires_grad=True)
rows = (x * 2).unbind(0)
rows[0].add_(1)
