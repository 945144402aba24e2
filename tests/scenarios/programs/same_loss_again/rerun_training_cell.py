# title: The cell that runs backward and the step is run again, not the forward
# kind: second_backward
# truth: measured.json
# run_order: 1 2 3 3
# %%
import torch
from torch import nn
torch.manual_seed(0)
reg = nn.Linear(2, 1)
sgd = torch.optim.SGD(reg.parameters(), 0.1)
# %%
prediction = reg(torch.randn(8, 2))
objective = prediction.exp().mean()
# %%
sgd.zero_grad()
objective.backward()
sgd.step()
