# verified:
# %%
import torch
import torch.nn as nn
net = nn.Linear(4, 2)
# %%
for phase in ["training", "val"]:
    with torch.set_grad_enabled(phase == "train"):
        loss = net(torch.randn(2, 4)).mean()
    if phase == "training":
        loss.backward()
