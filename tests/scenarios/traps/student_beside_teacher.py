# verified: remove_no_grad
# %%
import torch, torch.nn as nn
teacher, student = nn.Linear(3, 4), nn.Linear(3, 4)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.randn(5, 3)
# %%
with torch.no_grad():
    t = teacher(x)
    s = student(x)
    loss = (t - s).pow(2).mean()
loss.backward()
