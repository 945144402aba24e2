# verified: clone_before_inplace
# says: Read a copy of `boxes`
# never says: boxes = boxes.clone()
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Linear(4, 6)
# %%
def sizes(boxes):
    boxes[..., 2:4] = torch.sign(boxes[..., 2:4]) * torch.sqrt(
        torch.abs(boxes[..., 2:4])  # of both signs
    )
    return boxes
loss = sizes(torch.randn(3, 1) * net(torch.randn(3, 4))).pow(2).sum()
loss.backward()
