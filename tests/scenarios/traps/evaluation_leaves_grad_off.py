# verified: remove_no_grad
# %%
import torch
import torch.nn as nn
net = nn.Linear(4, 2)
# %%
def evaluate():
    torch.set_grad_enabled(False)
    return net(torch.ones(4)).mean().item()
def train_step():
    loss = net(torch.ones(4)).mean()
    loss.backward()
# %%
train_step()
evaluate()
# %%
train_step()
