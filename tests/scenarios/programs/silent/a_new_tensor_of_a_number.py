# title: The loss is a new tensor of a number: backward reaches nothing
# kind: silent
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
x = torch.randn(4, 3)
y = net(x).mean().item()
loss = torch.tensor(y, requires_grad=True)
loss.backward()
print(net.weight.grad)
