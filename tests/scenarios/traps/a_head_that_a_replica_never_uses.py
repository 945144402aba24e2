# verified:
# says: `ddp.module.extra.weight` | find_unused_parameters=True | In[1], line 11
# never says: not explained
# %%
import os, tempfile, torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
store = tempfile.NamedTemporaryFile(delete=False)
dist.init_process_group("gloo", init_method=f"file://{store.name}", rank=0, world_size=1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.extra = nn.Linear(3, 1)
    def forward(self, x, deep=False):
        h = self.body(x)
        return self.extra(h) if deep else h
ddp = DDP(Net())
# %%
def train(batches):
    for x in batches:
        ddp(x).sum().backward()
train([torch.ones(2, 3)] * 2)
