# verified: clone_before_inplace
# says: Read a copy of `prices` | Read a copy of `stocks`
# never says: This is not enough | go on with the copy
# %%
import torch

torch.manual_seed(0)
elasticity = torch.full((5,), 0.1, requires_grad=True)


def trade_(prices, stocks, elasticity):
    pressed = prices[1:] * torch.exp(-elasticity * stocks[1:])
    kept = stocks[1:] - elasticity * prices[1:] ** 2
    prices[1:] = pressed
    stocks[1:] = kept
# %%
for _ in range(2):
    bid = torch.rand(4, 5) + elasticity
    held = torch.rand(4, 5) * 2
    held = held - elasticity
    trade_(bid, held, elasticity)
    loss = (bid + held).sum()
    loss.backward()
