# verified: detach
# says: `labels = labels.detach()` after In[1], line 6
# %%
import torch
torch.manual_seed(0)
truth = torch.randn(4, 2, requires_grad=True)
w = torch.zeros(4, 2, requires_grad=True)
X = torch.randn(16, 4)
labels = (X @ truth).tanh()
class Batches:
    def __init__(self, x, y): self.x, self.y = x, y
    def __iter__(self):
        for i in range(0, 16, 4):
            yield self.x[i:i + 4], self.y[i:i + 4]
batches = Batches(X, labels)
def sgd(params):
    with torch.no_grad():
        for p in params:
            p -= 0.1 * p.grad
            p.grad.zero_()
# %%
for x, y in batches:
    loss = ((x @ w).tanh() - y).pow(2).mean()
    loss.backward()
    sgd([w])
