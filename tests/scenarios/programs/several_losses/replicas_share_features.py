# title: Threads share features that were computed once
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
from concurrent.futures import ThreadPoolExecutor
trunk, heads = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.ModuleList(nn.Linear(4, 1) for _ in range(2))
pool = ThreadPoolExecutor(1)
x = torch.randn(5, 3)
# %%
def work(head, features):
    loss = head(features).square().mean()
    loss.backward()
    return loss.item()

features = trunk(x)
# %%
print(pool.submit(work, heads[0], features).result())
# %%
print(pool.submit(work, heads[1], features).result())
