# verified: remove_no_grad
# says: runs in what `@evaluation` decorates | (In[1], line 5): no graph was built.
# never says: Nothing that | requires_grad=True
# %%
import functools, torch, torch.nn as nn
def evaluation(function):
    @functools.wraps(function)
    def inner(*given):
        with torch.no_grad():
            return function(*given)
    return inner
net = nn.Linear(3, 1)
@evaluation
def score(x):
    return net(x).mean()
# %%
loss = score(torch.randn(2, 3))
loss.backward()
