# verified: detach
# says: Cut the graph between passes | `kf.x = kf.x.detach()`
# never says: Run the forward pass
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.F, self.H = nn.Parameter(torch.eye(2)), nn.Parameter(torch.randn(1, 2))
        self.x, self.P = torch.zeros(2, 1), torch.eye(2)
    def update(self, z):
        self.x, self.P = self.F @ self.x, self.F @ self.P @ self.F.T
        error, spread = z - self.H @ self.x, self.H @ self.P @ self.H.T + 0.1
        gain = self.P @ self.H.T / spread
        self.x = self.x + gain * error
        self.P = (torch.eye(2) - gain @ self.H) @ self.P
        return (error ** 2 / spread + spread.log()).sum()
# %%
kf = Filter()
opt = torch.optim.SGD(kf.parameters(), 0.001)
for window in torch.randn(3, 4):
    loss = sum(kf.update(z) for z in window)
    opt.zero_grad()
    loss.backward()
    opt.step()
