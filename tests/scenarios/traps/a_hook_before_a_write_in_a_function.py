# verified:
# says: `net` has a full backward hook (In[1], line 4) | `y += 1` modifies such a view
# %%
import torch
net = torch.nn.Linear(3, 3)
seen = []
net.register_full_backward_hook(lambda module, given, out: seen.append(out[0]))
def shifted(x):
    y = net(x)
    y += 1
    return y
# %%
shifted(torch.ones(2, 3)).sum().backward()
