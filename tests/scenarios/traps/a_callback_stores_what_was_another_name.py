# verified: detach
# says: Store it detached: `self.net.anchor = self.net.last.detach()` (In[3], line 5).
# never says: self.last.detach() | net.last = net.last
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.anchor = nn.Linear(3, 2), None
    def training_step(self, x):
        self.last = self.body(x)
        loss = self.last.pow(2).mean()
        if self.anchor is not None:
            loss = loss + (self.last - self.anchor).abs().mean()
        return loss
# %%
class Remember:
    def __init__(self, net):
        self.net = net
    def on_step_end(self):
        self.net.anchor = self.net.last
def fit(net, callback):
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(4):
        loss = net.training_step(torch.randn(2, 3))
        opt.zero_grad()
        loss.backward()
        opt.step()
        callback.on_step_end()
# %%
net = Net()
fit(net, Remember(net))
