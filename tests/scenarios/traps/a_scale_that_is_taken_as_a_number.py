# verified:
# says: `scale` | `item` makes a Python number | (In[1], line 7)
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
scale = torch.ones(1, requires_grad=True)
opt = torch.optim.SGD([*net.parameters(), scale], lr=0.1)
def scaled(x):
    return net(x) * scale.item()
# %%
for _ in range(3):
    opt.zero_grad()
    scaled(torch.randn(4, 3)).pow(2).mean().backward()
    opt.step()
