# title: backward(create_graph=True) on new inputs in each step
# kind: leak
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
# %%
for i in range(4):
    pts = torch.randn(3, requires_grad=True)
    pts.pow(3).sum().backward(create_graph=True)
