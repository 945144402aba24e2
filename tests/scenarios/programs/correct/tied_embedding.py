# title: Weight tying: one matrix for embedding and output
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(7, 4)
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.emb.weight
    def forward(self, ids):
        return self.out(self.emb(ids).mean(1))
lm = Tiny()
opt = torch.optim.SGD(lm.parameters(), 0.1)
# %%
for ids in torch.randint(7, (4, 2, 5)):
    opt.zero_grad()
    nn.functional.cross_entropy(lm(ids), ids[:, 0]).backward()
    opt.step()
