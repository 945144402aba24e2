# verified: detach
# says: `t.state` was built in In[1], line 7, iteration 0. | Cut the graph between passes: `self.state = self.state.detach()` after In[1], line 9.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Trainer:
    def __init__(self, net):
        self.net = net; self.opt = torch.optim.SGD(net.parameters(), lr=.1); self.state = None; self.log = []
    def step(self, x):
        out, self.state = self.net(x, self.state)
        loss = out.pow(2).mean()
        self.opt.zero_grad(); loss.backward(); self.opt.step()
        self.log.append(loss.item())
        return loss
    def fit(self, data):
        for x in data:
            self.step(x)
# %%
t = Trainer(nn.GRU(2, 3, batch_first=True))
t.fit(torch.randn(3, 1, 4, 2))
