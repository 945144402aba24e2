# verified:
# never says: never trained
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Saliency(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net, self.image = net, torch.zeros(3, 4, requires_grad=True)
    def forward(self, y):
        return (self.net(self.image) - y).pow(2).mean()
# %%
net, maps = nn.Linear(4, 2), []
saliency, opt = Saliency(net), torch.optim.SGD(net.parameters(), 0.1)
for step in range(10):
    opt.zero_grad()
    saliency(torch.randn(3, 2)).backward()
    maps.append(saliency.image.grad.abs().mean().item())
    opt.step()
