# verified: detach
# says: `ring, mean = ring.detach(), mean.detach()` (In[1], line 18) gives only the names of the loop new tensors | `memory` keeps the old ones | `memory[room] = (ring.detach(), mean.detach())`
# never says: retain_graph=True
# %%
import torch
from torch import nn

torch.manual_seed(0)


class Echo(nn.Module):
    def __init__(self):
        super().__init__()
        self.feedback, self.decay = nn.Linear(4, 4), nn.Parameter(torch.tensor(0.5))

    def forward(self, sound, memory):
        return {k: (torch.tanh(sound + self.feedback(r)), self.decay * m + r) for k, (r, m) in memory.items()}


def cut_off(memory):
    for room, (ring, mean) in memory.items():
        ring, mean = ring.detach(), mean.detach()
    return memory
# %%
echo = Echo()
optimizer = torch.optim.SGD(echo.parameters(), lr=0.01)
memory = {room: (torch.zeros(2, 4), torch.zeros(2, 4)) for room in ("hall", "cave")}
for block in torch.randn(4, 2, 4):
    memory = cut_off(memory)
    memory = echo(block, memory)
    loss = sum(ring.pow(2).mean() + mean.abs().mean() for ring, mean in memory.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
