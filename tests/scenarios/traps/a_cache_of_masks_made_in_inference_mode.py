# verified:
# says: needs `mask` for a backward | torch.no_grad()
# says: switches inference mode on in In[1], line 5
# %%
import torch
cache = {}
w = torch.ones(3, requires_grad=True)
def predict(x):
    with torch.inference_mode():
        cache["mask"] = (x > 0).float()
        return (w * x * cache["mask"]).sum().item()
# %%
predict(torch.ones(3))
mask = cache["mask"]
loss = (w * mask).sum()
loss.backward()
