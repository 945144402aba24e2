# title: The forward pass of an LBFGS closure stands outside; the loss inside
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
x = torch.randn(20, 2); y = (x @ torch.tensor([1.0, -2.0])) + 0.5
w = torch.zeros(2, requires_grad=True); b = torch.zeros((), requires_grad=True)
opt = torch.optim.LBFGS([w, b], max_iter=5)
pred = x @ w.exp() + b
def closure():
    opt.zero_grad()
    loss = (pred - y).square().mean()
    loss.backward()
    return loss
# %%
opt.step(closure)
