# verified:
# says: 
# never says: Write 
# %%
import torch
from torch.nn.utils import parameters_to_vector
rows = torch.ones(3, 2)
def last(values):
    return values.mean().__getitem__(0)
# %%
print(last(rows[0]))
