# title: .grad adds up over calls with create_graph
# kind: leak
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
x = torch.randn(3, requires_grad=True)
for i in range(5):
    y = (x ** 3).sum()
    y.backward(create_graph=True)
