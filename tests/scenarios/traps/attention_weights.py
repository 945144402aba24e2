# verified: single_backward_sum retain_graph_earlier_call
# says: `w` was built in In[2], line 2. | reaches the same node through `w`.
# %%
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
enc = nn.GRU(6, 8, batch_first=True)
attn = nn.MultiheadAttention(8, 2, batch_first=True)
head = nn.Linear(8, 3)
x, target = torch.randn(4, 5, 6), torch.randint(3, (4,))
# %%
h, _ = enc(x)
ctx, w = attn(h, h, h)
logits = head(ctx.mean(1))
ce = F.cross_entropy(logits, target)
ent = -(w * (w + 1e-6).log()).sum(-1).mean()
# %%
ce.backward()
# %%
ent.backward()
