# verified: scalar_loss pass_gradient
# says: `out` has 8 values, of shape [4, 2]. | Make one number of it: `out.sum()`
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Linear(3, 2)
out = net(torch.randn(4, 3))
out.backward()
