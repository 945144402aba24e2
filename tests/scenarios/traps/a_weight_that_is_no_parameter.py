# verified:
# says: `weighting.log_vars` is never trained | makes a plain tensor | Make it a parameter with `torch.nn.Parameter`
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Weighting(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_vars = torch.zeros(2, requires_grad=True)
    def forward(self, losses):
        return sum(torch.exp(-w) * loss + w for w, loss in zip(self.log_vars, losses))
# %%
net, weighting = nn.Linear(3, 2), Weighting()
opt = torch.optim.Adam([*net.parameters(), *weighting.parameters()], 0.01)
for step in range(10):
    out = net(torch.randn(4, 3))
    loss = weighting((out[:, 0].pow(2).mean(), out[:, 1].abs().mean()))
    opt.zero_grad()
    loss.backward()
    opt.step()
