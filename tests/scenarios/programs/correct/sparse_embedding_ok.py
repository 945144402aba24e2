# title: Sparse gradients of an embedding bag
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

bag, head = nn.EmbeddingBag(10, 4, sparse=True, mode="sum"), nn.Linear(4, 2)
sparse, dense = torch.optim.SparseAdam(list(bag.parameters())), torch.optim.Adam(head.parameters())
# %%
for step in range(4):
    words, labels = torch.randint(10, (3, 5)), torch.randint(2, (3,))
    loss = nn.functional.cross_entropy(head(bag(words)), labels)
    for optimizer in (sparse, dense):
        optimizer.zero_grad()
    loss.backward()
    for optimizer in (sparse, dense):
        optimizer.step()
