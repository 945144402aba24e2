# verified: clone_before_inplace
# says: `hidden = emb(ctx).mean(1)` (In[2], line 2) modified `emb.weight`
# %%
import torch
torch.manual_seed(0)
emb = torch.nn.Embedding(10, 4, max_norm=0.5)
head = torch.nn.Linear(4, 10)
ctx = torch.tensor([[1, 2], [3, 4]])
# %%
reg = (emb.weight @ emb.weight.t()).sum()
hidden = emb(ctx).mean(1)
loss = head(hidden).sum() + reg
loss.backward()
