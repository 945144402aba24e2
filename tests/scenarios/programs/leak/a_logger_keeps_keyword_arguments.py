# title: A logger keeps the keyword arguments of each call
# kind: leak
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 3)
class Logger:
    def __init__(self): self.rows = []
    def log(self, **kw): self.rows.append(kw)
logger = Logger()
for i in range(5):
    loss = net(torch.randn(2, 3)).pow(2).sum()
    loss.backward()
    logger.log(step=i, loss=loss)
