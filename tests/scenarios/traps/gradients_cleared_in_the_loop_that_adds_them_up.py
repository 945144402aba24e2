# verified:
# says: Of 3 gradients in a row, 2 are cleared before a step uses them. | move `sgd.zero_grad()` (In[2], line 5) behind `sgd.step()` (In[2], line 8)
# %%
import torch

torch.manual_seed(0)
tagger = torch.nn.Linear(4, 2)
sgd = torch.optim.SGD(tagger.parameters(), lr=0.1)
batches = [(torch.randn(3, 4), torch.tensor([0, 1, 1])) for _ in range(12)]
# %%
def epoch(batches, every=3):
    for at in range(0, len(batches), every):
        for x, y in batches[at : at + every]:
            # one window
            sgd.zero_grad()
            loss = torch.nn.functional.cross_entropy(tagger(x), y) / every
            loss.backward()
        sgd.step()


epoch(batches)
