# verified: detach
# says: Cut the graph between passes: `past = [one.detach() for one in past]` after In[2], line 5
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, 3, requires_grad=True)
past = []
# %%
for it in range(3):
    h = torch.tanh(w @ torch.randn(3))
    past.append(h)
    loss = torch.stack(past).pow(2).sum()
    loss.backward()
