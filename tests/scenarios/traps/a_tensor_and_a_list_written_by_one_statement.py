# verified: clone_before_inplace
# says: Read a copy of `field`
# never says: `terms = terms.clone()` | terms[step].clone()
# %%
import torch

torch.manual_seed(0)
scale = torch.randn(3, requires_grad=True)
terms = [None, None]
# %%
for step in range(2):
    field = torch.ones(4, 3) * scale
    terms[step], field[0] = field.pow(2).sum(), field[1].exp()
    loss = terms[step] + field.sum()
    loss.backward()
