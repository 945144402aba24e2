# title: A memo dict filled in the first epoch and reused in the second
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
emb = nn.Embedding(4, 3)
memo = {}
def vector(word):
    if word not in memo:
        memo[word] = emb(torch.tensor(word)).tanh()
    return memo[word]
# %%
for word in [0, 1, 2, 1, 3]:
    loss = vector(word).pow(2).sum()
    loss.backward()
