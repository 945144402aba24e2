# verified: retain_graph_earlier_call single_backward_sum recompute_in_loop
# says: `feats` was built in In[1], line 5. | Iteration 1 reaches the same node through `feats`.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
def batches():
    feats = net.weight.tanh()
    for i in range(3):
        yield feats * i
# %%
for b in batches():
    (b.sum() ** 2).backward()
