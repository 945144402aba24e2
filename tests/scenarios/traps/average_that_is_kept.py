# verified: detach
# says: `shadow` keeps 2 tensors
# never says: del shadow | costs nothing
# %%
import torch
from torch import nn
torch.manual_seed(0)
student = nn.Linear(5, 5)
shadow = {k: v.clone() for k, v in student.named_parameters()}
opt = torch.optim.SGD(student.parameters(), 0.05)
for step in range(12):
    loss = student(torch.randn(4, 5)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    for k, v in student.named_parameters():
        shadow[k] = 0.99 * shadow[k] + 0.01 * v
