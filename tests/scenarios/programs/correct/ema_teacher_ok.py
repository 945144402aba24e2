# title: An exponential moving average teaches a student
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
import copy
import torch.nn.functional as F
student = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 3))
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.AdamW(student.parameters(), 1e-3)

@torch.no_grad()
def update(decay):
    for slow, fast in zip(teacher.parameters(), student.parameters()):
        slow.lerp_(fast, 1 - decay)
    for slow, fast in zip(teacher.buffers(), student.buffers()):
        slow.copy_(fast)
# %%
for step in range(6):
    x = torch.randn(8, 4)
    with torch.no_grad():
        target = teacher(x).softmax(-1)
    loss = F.cross_entropy(student(x + 0.1 * torch.randn_like(x)), target)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(student.parameters(), 1.0)
    optimizer.step()
    update(0.99)
