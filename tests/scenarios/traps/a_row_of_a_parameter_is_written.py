# verified: under_no_grad
# says: `row` is a view of `embedding.weight`, a leaf that requires grad
# never says: `row` is a leaf
# %%
import torch, torch.nn as nn
embedding = nn.Embedding(5, 3)
row = embedding.weight[0]
# %%
row.zero_()
