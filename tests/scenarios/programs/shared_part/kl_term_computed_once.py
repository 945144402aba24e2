# title: A KL term of the weights computed once and added to every batch's loss
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
mu = torch.zeros(3, requires_grad=True)
log_s = torch.zeros(3, requires_grad=True)
kl = 0.5 * (mu ** 2 + log_s.exp() - log_s - 1).sum()
# %%
for xb in torch.randn(3, 5, 3):
    w = mu + torch.randn(3) * (0.5 * log_s).exp()
    elbo = (xb @ w).pow(2).mean() + kl
    elbo.backward()
