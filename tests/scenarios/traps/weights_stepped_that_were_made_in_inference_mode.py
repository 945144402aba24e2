# verified:
# says: net.weight | switches inference mode on in In[1], line 3
# %%
import torch
net = torch.nn.Linear(2, 1)
@torch.inference_mode()
def scaled(module):
    module.weight = torch.nn.Parameter(module.weight * 2)
scaled(net)
# %%
with torch.no_grad():
    net.weight.mul_(0.5)
