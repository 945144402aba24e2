# verified:
# says: reported a second | is re-entrant
# %%
import os, tempfile, torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
store = tempfile.NamedTemporaryFile(delete=False)
dist.init_process_group("gloo", init_method=f"file://{store.name}", rank=0, world_size=1)
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
    def forward(self, x):
        for _ in range(2):
            x = checkpoint(self.body, x, use_reentrant=True)
        return x
ddp = DDP(Net(), find_unused_parameters=True)
# %%
for _ in range(2):
    ddp(torch.ones(2, 3, requires_grad=True)).sum().backward()
