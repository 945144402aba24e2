# title: The loss compares predictions with labels
# kind: element0
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 2)
x, y = torch.randn(8, 3), torch.randint(0, 2, (8,))
pred = net(x) > 0
loss = (pred[:, 0] == y).float().mean()
loss.backward()
