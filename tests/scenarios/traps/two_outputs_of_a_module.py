# verified: retain_graph_earlier_call recompute_in_loop
# says: `value` was built in In[2], line 2. | reaches the same node through `value`.
# %%
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 4); self.a = nn.Linear(4, 1); self.b = nn.Linear(4, 1)
    def forward(self, z):
        t = torch.tanh(self.shared(z))
        return self.a(t), self.b(t)
enc, net = nn.Linear(3, 4), Two()
x = torch.randn(5, 3)
# %%
z = enc(x)
policy, value = net(z)
# %%
policy.sum().backward()
# %%
value.pow(2).sum().backward()
