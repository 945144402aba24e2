# verified: single_backward_sum retain_graph_earlier_call
# says: reaches the same node through `logvar`.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.Tanh())
        self.mu, self.logvar, self.dec = nn.Linear(8, 2), nn.Linear(8, 2), nn.Linear(2, 6)
    def forward(self, x):
        h = self.body(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar
vae = VAE(); x = torch.randn(4, 6)
# %%
recon, mu, logvar = vae(x)
rec_loss = (recon - x).pow(2).mean()
kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
# %%
rec_loss.backward()
kl.backward()
