# verified:
# says: `fast` is a generator that yields inside `with torch.no_grad():` (In[1], line 4)
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
