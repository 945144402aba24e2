# verified:
# says: `flux` was modified in place, and views of it are used.
# says: `flux.div_(area)` (In[2], line 4) has modified `flux` in place
# %%
import torch
# %%
def divergence(flux, area):
    sides = {name: side for name, side in zip(("west", "east"), flux.unbind(-1))}
    total = flux.sum()
    flux.div_(area)
    return sides["east"] - sides["west"] + total
# %%
speed = torch.ones(6, 2, requires_grad=True)
loss = divergence(speed * 3, 2.0).sum()
loss.backward()
