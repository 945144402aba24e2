# title: A cached property keeps what was made of a weight
# kind: second_backward
# truth: measured.json
# %%
import torch
from functools import cached_property, lru_cache
torch.manual_seed(0)
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(3, 3))
    @cached_property
    def sym(self):
        return torch.linalg.matrix_exp(self.w)
    def forward(self, x):
        return x @ self.sym
m = M()
opt = torch.optim.SGD(m.parameters(), 0.1)
# %%
for x in torch.randn(3, 2, 3):
    opt.zero_grad()
    m(x).sum().backward()
    opt.step()
