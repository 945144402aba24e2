# title: Weights normalised once in __init__
# kind: second_backward
# source: class of https://github.com/shenweichen/DeepCTR-Torch/issues/69
# source: https://github.com/lab-cosmo/torch-pme/issues/62
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Cosine(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 3))
        self.w_norm = self.w / self.w.norm(dim=1, keepdim=True)
    def forward(self, x):
        return x @ self.w_norm.t()
model = Cosine()
opt = torch.optim.SGD(model.parameters(), lr=.1)
# %%
for step in range(3):
    loss = model(torch.randn(5, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
