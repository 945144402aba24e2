# title: Adjacency cached at the first forward pass
# kind: second_backward
# source: https://github.com/sigeisler/robustness_of_gnns_at_scale/issues/4
# source: https://github.com/lab-cosmo/torch-pme/issues/62
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class GraphLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.edge = nn.Parameter(torch.rand(4, 4))
        self.lin = nn.Linear(3, 3)
        self._adj = None
    def adjacency(self):
        if self._adj is None:
            self._adj = torch.softmax(self.edge, dim=1)
        return self._adj
    def forward(self, x):
        return self.adjacency() @ self.lin(x)
layer = GraphLayer()
opt = torch.optim.Adam(layer.parameters())
x = torch.randn(4, 3)
# %%
for epoch in range(3):
    opt.zero_grad()
    out = layer(x)
    out.pow(2).mean().backward()
    opt.step()
