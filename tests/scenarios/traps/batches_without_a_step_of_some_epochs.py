# verified:
# never says: cleared before a step
# %%
import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
adam = torch.optim.Adam(net.parameters(), lr=0.1)
batches = [torch.randn(3, 4) for _ in range(5)]
# %%
for epoch in range(4):
    adam.zero_grad()  # the last batch of an epoch is left over
    for at, x in enumerate(batches):
        (net(x).pow(2).mean() / 2).backward()
        if at % 2:
            adam.step()
            adam.zero_grad()
for epoch in range(3):
    for at, x in enumerate(batches):
        adam.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        if torch.isfinite(loss) and at != 2:
            adam.step()
