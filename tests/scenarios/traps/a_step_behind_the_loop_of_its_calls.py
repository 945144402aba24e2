# verified:
# says: To make a step for each call, move `adam.step()` (In[2], line 7) behind `loss.backward()` (In[2], line 6).
# %%
import torch

torch.manual_seed(0)
probe = torch.nn.Linear(4, 2)
adam = torch.optim.Adam(probe.parameters(), lr=0.1)
batches = [(torch.randn(3, 4), torch.tensor([0, 1, 1])) for _ in range(4)]
# %%
for epoch in range(4):
    for x, y in batches:
        adam.zero_grad()
        loss = torch.nn.functional.cross_entropy(probe(x), y)
        # for each batch
        loss.backward()
    adam.step()
