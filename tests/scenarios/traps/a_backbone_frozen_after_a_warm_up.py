# verified:
# says: are frozen, and still moved by the steps. | Write `p.grad = None` behind it
# never: requires_grad = True
# %%
import torch
from torch import nn

torch.manual_seed(0)


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(7, 9), nn.GELU())
        self.score = nn.Linear(9, 1)

    def forward(self, items):
        return self.score(self.base(items)).squeeze(-1)


def freeze(module):
    for p in module.parameters():
        p.requires_grad = False


ranker = Ranker()
opt = torch.optim.SGD(ranker.parameters(), lr=0.05, momentum=0.9)
better, worse = torch.randn(32, 7), torch.randn(32, 7)
# %%
for epoch in range(8):
    if epoch == 4:
        freeze(ranker.base)
    loss = nn.functional.softplus(ranker(worse) - ranker(better)).mean()
    loss.backward()
    opt.step()
    for p in opt.param_groups[0]["params"]:
        p.grad.zero_()
