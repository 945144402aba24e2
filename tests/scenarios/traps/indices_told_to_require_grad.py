# verified:
# says: `ids` is int64
# %%
import torch, torch.nn as nn
embedding, ids = nn.Embedding(10, 4), torch.tensor([1, 2, 3])
ids.requires_grad_()
loss = embedding(ids).sum()
