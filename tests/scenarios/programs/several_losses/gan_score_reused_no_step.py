# title: Generator's loss built from the same scores as the critic's
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
gen, critic = nn.Linear(2, 3), nn.Linear(3, 1)
fake_score = critic(gen(torch.randn(4, 2)).tanh()).sigmoid()
critic_loss = fake_score.log().mean()
gen_loss = (1 - fake_score).log().mean()
# %%
critic_loss.backward()
# %%
gen_loss.backward()
