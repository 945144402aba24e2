# verified: recompute_in_loop
# %%
import torch
torch.manual_seed(0)
f = torch.nn.Linear(4, 4)
of = torch.optim.SGD(f.parameters(), lr=0.1)
x = torch.randn(2, 4)
def closure():
    of.zero_grad()
    l = f(f(x)).pow(2).sum()
    l.backward()
    return l
# %%
reg = (f.weight @ f.weight).sum()
lf = of.step(closure)
print(lf.item())
reg.backward()
