# title: Two log_prob of one Distribution object
# kind: second_backward
# source: https://github.com/pytorch/pytorch/issues/11192
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
from torch.distributions import Bernoulli
p = torch.tensor(0.2, requires_grad=True)
pi = Bernoulli(p)
l1 = 2 * pi.log_prob(torch.tensor(1.0))
l2 = 3 * pi.log_prob(torch.tensor(0.0))
# %%
l1.backward()
# %%
l2.backward()
