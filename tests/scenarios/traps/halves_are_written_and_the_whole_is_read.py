# verified:
# says: `left` is one of several views that one call made.
# says: `field.chunk(2, dim=1)` (In[2], line 2) made them.
# says: [field[:, i:i + k] for k in [-(-field.shape[1] // 2)]
# never says: left = left.mul(3)
# %%
import torch
torch.manual_seed(0)
source = torch.randn(3, 4, requires_grad=True)
# %%
field = source * 2
left, right = field.chunk(2, dim=1)
left.mul_(3)
(field.sum() + right.sum()).backward()
