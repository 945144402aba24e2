# verified: single_backward_sum retain_graph_earlier_call
# never says: into the loop of `weigh`
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
heads = nn.ModuleList(nn.Linear(3, 1) for _ in range(3))
log_var = nn.Parameter(torch.zeros(3))
opt = torch.optim.SGD([*heads.parameters(), log_var], 0.1)
# %%
def weigh(losses):
    weights = log_var.neg().exp()
    for weight, loss in zip(weights, losses):
        yield weight * loss
# %%
for step in range(3):
    x = torch.randn(2, 3)
    opt.zero_grad()
    for part in weigh([head(x).pow(2).mean() for head in heads]):
        part.backward()
    opt.step()
