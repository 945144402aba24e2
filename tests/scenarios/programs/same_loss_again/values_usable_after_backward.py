# title: After c.backward() b and c are still usable in the forward direction, but not for another backward
# kind: second_backward
# source: seed 002 (discuss.pytorch.org: Backpropagation - Graph is reused while it shouldn't)
# truth: measured.json
# %%
import torch
a = torch.tensor(1., requires_grad=True)
b = a * torch.tensor(2.)
c = b * torch.tensor(3.)
c.backward()
# %%
d = b * torch.tensor(4.)
e = c * torch.tensor(5.)
print(d, e)
# %%
d.backward()
