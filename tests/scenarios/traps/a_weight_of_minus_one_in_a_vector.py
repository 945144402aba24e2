# verified:
# says: Give it the shape of `gain`: `down.reshape(gain.shape)`.
# never says: Leave `gradient` out
# %%
import torch

torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
down = torch.tensor([-1.0])
# %%
gain = net(torch.randn(4, 2)).mean()
gain.backward(down)
