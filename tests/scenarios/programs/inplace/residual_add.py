# title: out += residual after relu
# kind: inplace
# source: https://github.com/iMED-Lab/ER-Net/pull/3
# source: https://github.com/pytorch/pytorch/issues/5687
# source: https://github.com/microsoft/unilm/pull/999
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
fc = nn.Linear(4, 4)
x = torch.randn(2, 4)
# %%
residual = fc(x)
out = torch.relu(residual)
out += residual
# %%
out.sum().backward()
