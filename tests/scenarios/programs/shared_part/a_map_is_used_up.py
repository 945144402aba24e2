# title: What a map has built cannot be built from its list again
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
xs = torch.randn(5, 3)
w = torch.randn(3, requires_grad=True)
def model(x): return x @ w
preds = map(model, xs)
preds = list(preds)
stack = torch.stack(preds)
l1 = stack.mean()
l2 = stack.std()
# %%
l1.backward()
# %%
l2.backward()
