# title: A running factor is multiplied in place while each step's product needs it
# kind: inplace
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
gain = torch.tensor(1.5, requires_grad=True)
# %%
scale = torch.ones(())
total = 0
for t in range(3):
    scale *= 0.9
    total = total + gain * scale
# %%
total.backward()
