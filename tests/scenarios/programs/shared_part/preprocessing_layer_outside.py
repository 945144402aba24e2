# title: Input passed through a layer once, outside the training loop
# kind: second_backward
# source: https://github.com/lucidrains/denoising-diffusion-pytorch/issues/109
# source: https://discuss.pytorch.org/t/which-is-freed-which-is-not/8636
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
adapt = nn.Conv1d(2, 3, 1)
net = nn.Sequential(nn.Conv1d(3, 3, 3, padding=1), nn.ReLU(), nn.Conv1d(3, 1, 1))
opt = torch.optim.Adam(net.parameters())
raw = torch.randn(4, 2, 8)
# %%
data = adapt(raw)
# %%
for epoch in range(3):
    loss = net(data).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
