# verified: remove_no_grad
# says: it made a new tensor without a graph. | Write `w -= 0.1 * m`
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
m = torch.zeros(3)
# %%
for i in range(3):
    loss = (w ** 2).sum()
    loss.backward()
    m = 0.9 * m + w.grad
    with torch.no_grad():
        w = w - 0.1 * m
    print(w.requires_grad)
