# title: Blocks are recomputed in the backward pass
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(torch.relu_(self.up(self.norm(x)))))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.blocks, self.out = nn.Linear(3, 4), nn.ModuleList(Block(4) for _ in range(3)), nn.Linear(4, 1)
        self.tail = nn.Sequential(Block(4), Block(4))

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.out(checkpoint_sequential(self.tail, 2, x, use_reentrant=False))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
# %%
losses = []
for epoch in range(3):
    for x in torch.randn(2, 5, 3):
        optimizer.zero_grad()
        loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
