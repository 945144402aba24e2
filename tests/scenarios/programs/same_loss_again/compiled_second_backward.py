# title: torch.compile'd model: second backward names CompiledFunctionBackward
# kind: second_backward
# source: https://github.com/unslothai/unsloth/issues/3543
# source: https://github.com/locuslab/torchdeq/issues/11
# source: https://github.com/bytetriper/RAE/issues/74
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
fast = torch.compile(net, backend="aot_eager")
loss = fast(torch.randn(2, 3)).pow(2).sum()
# %%
loss.backward()
# %%
loss.backward()
