# title: One loss, two cells that run its backward
# kind: second_backward
# truth: measured.json
# %%
import torch
p = torch.full((3,), 2.0, requires_grad=True)
q = p.log()
area = q.prod()
# %%
area.backward()
# %%
print(p.grad)
area.backward()
