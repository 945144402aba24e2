# verified: under_no_grad
# says: changes the values of `rate`
# never says: Leave out
# A step by hand writes into the leaf itself: without `out=`, the leaf would be replaced by a computed tensor.
# %%
import torch

torch.manual_seed(0)
rate = torch.tensor([0.5, 0.2], requires_grad=True)
decays = torch.rand(6, 2)
# %%
for epoch in range(3):
    rate.grad = None
    loss = (torch.exp(-decays * rate) - 0.7).pow(2).sum()
    loss.backward()
    torch.sub(rate, rate.grad, alpha=0.1, out=rate)
