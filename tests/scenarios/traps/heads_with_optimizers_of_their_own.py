# verified: retain_graph_earlier_call
# says: Keep what In[2], line 5 frees
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 8)
        self.heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
    def forward(self, x):
        h = torch.relu(self.trunk(x))
        return [head(h) for head in self.heads]
net = Ensemble()
opts = [torch.optim.SGD(h.parameters(), lr=0.1) for h in net.heads]
x, y = torch.randn(6, 4), torch.randn(6, 1)
# %%
outs = net(x)
for out, opt in zip(outs, opts):
    loss = nn.functional.mse_loss(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
