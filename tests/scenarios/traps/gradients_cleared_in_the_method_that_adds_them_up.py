# verified:
# says: Of 2 gradients in a row, 1 is cleared before a step uses them. | move `self.rule.zero_grad()` (In[2], line 8) behind `self.rule.step()` (In[2], line 13)
# %%
import torch

torch.manual_seed(0)
# %%
class Coach:
    def __init__(self, net):
        self.net, self.seen = net, 0
        self.rule = torch.optim.SGD(net.parameters(), lr=0.1)

    def look(self, x):
        # one of two
        self.rule.zero_grad()
        (self.net(x).pow(2).mean() / 2).backward()
        self.seen += 1

    def move(self):
        self.rule.step()

    def train(self, series):
        for x in series:
            self.look(x)
            if self.seen % 2 == 0:
                self.move()
# %%
Coach(torch.nn.Linear(3, 1)).train(torch.randn(12, 4, 3))
