# Attributes with the name of the flag: one says what holds, one keeps an argument, one is set for a while only.
# verified:
# never says: plain attribute | frozen
# %%
import torch
from torch import nn

torch.manual_seed(0)


class Features(nn.Module):
    def __init__(self, requires_grad=False):
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.requires_grad = requires_grad
        if not requires_grad:
            for parameter in self.parameters():
                parameter.requires_grad = False

    def forward(self, x):
        return self.layer(x).tanh()


# %%
features, tuned, critic = Features(), Features(), nn.Linear(4, 1)
tuned.requires_grad_(True)
for_critic = torch.optim.SGD([*critic.parameters(), *tuned.parameters()], lr=0.1)
z = nn.Parameter(torch.randn(8, 3))
for_z = torch.optim.SGD([z], lr=0.1)
for _ in range(3):
    critic.requires_grad = False
    loss = critic(features(z)).pow(2).mean()
    for_z.zero_grad()
    loss.backward()
    for_z.step()
    critic.requires_grad = True
    score = critic(tuned(z.detach())).pow(2).mean()
    for_critic.zero_grad()
    score.backward()
    for_critic.step()
