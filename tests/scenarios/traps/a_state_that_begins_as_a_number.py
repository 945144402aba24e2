# verified: detach
# says: if torch.is_tensor(self.kl): self.kl = self.kl.detach()
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.kl = nn.Linear(3, 2), 0
    def forward(self, x):
        self.kl += self.w.weight.pow(2).exp().sum()
        return self.w(x)
# %%
net = nn.Sequential(Layer(), Layer())
opt = torch.optim.SGD(net.parameters(), 0.01)
def train(batches):
    for x in batches:
        loss = net[0](x).pow(2).mean() + net[1](torch.randn(4, 3)).mean() + sum(layer.kl for layer in net)
        opt.zero_grad()
        loss.backward()
        opt.step()
train(torch.randn(3, 4, 3))
