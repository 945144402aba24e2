# title: A teacher under no_grad as a decorator, a student with a graph
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
@torch.no_grad()
def soft_targets(x):
    return teacher(x).softmax(1)
# %%
opt = torch.optim.SGD(student.parameters(), 0.1)
for _ in range(3):
    x = torch.randn(5, 4)
    loss = nn.functional.kl_div(student(x).log_softmax(1), soft_targets(x), reduction="batchmean")
    opt.zero_grad(); loss.backward(); opt.step()
