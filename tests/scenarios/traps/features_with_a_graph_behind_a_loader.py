# verified: detach
# says: `teacher.bias` and `teacher.weight` get no gradient
# never says: retain_graph=True
# %%
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.SGD(student.parameters(), 0.1)
# %%
def soft_labels(net, inputs):
    parts = [net(part) for part in inputs.split(4)]
    return torch.cat(parts)
inputs = torch.randn(8, 4)
loader = DataLoader(TensorDataset(inputs, soft_labels(teacher, inputs)), batch_size=4)
# %%
for x, soft in loader:
    loss = F.mse_loss(student(x), soft.softmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
