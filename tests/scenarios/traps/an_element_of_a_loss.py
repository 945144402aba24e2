# verified:
# says: `total_loss`, which has no dimensions | Write `total_loss.item()`
# %%
import torch
net = torch.nn.Linear(2, 1)
def epoch(batches):
    running = 0.0
    for x in batches:
        total_loss = net(x).pow(2).mean()
        total_loss.backward()
        running += total_loss.data[0]
    return running / len(batches)
# %%
print(epoch([torch.ones(4, 2), torch.zeros(4, 2)]))
