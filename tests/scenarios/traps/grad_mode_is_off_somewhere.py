# verified:
# says: Grad mode is off where `loss.backward()` runs
# never says: Nothing that | requires_grad=True
# %%
import contextlib, torch, torch.nn as nn
@contextlib.contextmanager
def fast():
    with torch.no_grad():
        yield
net = nn.Linear(3, 1)
# %%
with fast():
    loss = net(torch.randn(2, 3)).mean()
    loss.backward()
