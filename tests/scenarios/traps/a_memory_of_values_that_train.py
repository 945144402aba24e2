# verified:
# says: Compute `memory[
# never says: detach | retain_graph
# %%
import random, torch, torch.nn as nn
from collections import deque, namedtuple
torch.manual_seed(0)
random.seed(0)
Step = namedtuple("Step", ("q", "reward"))
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
memory = deque(maxlen=20)
# %%
for t in range(12):
    memory.append(Step(net(torch.randn(3)).exp(), random.random()))
    if len(memory) >= 3:
        batch = Step(*zip(*random.sample(memory, 3)))
        q = torch.stack(batch.q)
        loss = (q.max(1).values - torch.tensor(batch.reward)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
