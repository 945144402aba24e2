# verified: single_backward_sum recompute_in_loop retain_graph_earlier_call
# %%
import torch, torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.b = nn.Linear(3, 4); self.hs = nn.ModuleList([nn.Linear(4, 1) for _ in range(3)])
    def forward(self, x):
        z = torch.tanh(self.b(x))
        return [h(z) for h in self.hs]
net = Net()
# %%
outs = net(torch.randn(4, 3))
for i in range(3):
    outs[i].pow(2).mean().backward()
