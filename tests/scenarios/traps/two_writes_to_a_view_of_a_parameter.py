# verified: under_no_grad
# says: `b` is a view of `self.conv.bias`, a leaf that requires grad | in lines 7 and 8
# never says: `b` is a leaf
# %%
import torch, torch.nn as nn
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 6, 1)
        b = self.conv.bias.view(3, -1)
        b[:, 0] += 1.5
        b[:, 1:] -= 2
        self.conv.bias = nn.Parameter(b.view(-1))
# %%
head = Head()
