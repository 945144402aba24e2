# verified:
# says: would replace it by a tensor that is no Parameter
# never says: computed tensor
# %%
import torch, torch.nn as nn
net = nn.Linear(3, 3)
net.weight = torch.zeros(3, 3)
