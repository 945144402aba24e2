# verified: recompute_in_loop
# says: Run `features = torch.tanh(lift(raw))` (In[2], line 4) again in the loop, so that each iteration builds its own graph.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
# %%
def main(epochs):
    raw = torch.randn(16, 2)
    lift = nn.Linear(2, 4)
    features = torch.tanh(lift(raw))
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    opt = torch.optim.Adam([*lift.parameters(), *model.parameters()], 1e-3)
    for epoch in range(epochs):
        for start in range(0, 16, 8):
            loss = model(features[start:start + 8]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
# %%
main(2)
