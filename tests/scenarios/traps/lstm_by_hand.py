# verified: single_backward_sum retain_graph_earlier_call detach
# %%
import torch
torch.manual_seed(0)
W = torch.randn(12, 5, requires_grad=True)
x = torch.randn(3, 2)
h = torch.zeros(3, 3); c = torch.zeros(3, 3)
losses = []
for t in range(3):
    i, f, o, g = (torch.cat([x, h], 1) @ W.t()).split(3, 1) 
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    losses.append(h.pow(2).mean())
# %%
for l in losses:
    l.backward()
