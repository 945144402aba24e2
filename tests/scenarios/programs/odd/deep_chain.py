# title: A chain of 60000 nodes: a recursive walk dies
# kind: nasty
# source: research (recursion limit)
# truth: measured.json
# %%
import torch, sys
x = torch.zeros((), requires_grad=True)
y = x
for _ in range(60000):
    y = y + 1
# %%
y.backward()
# %%
y.backward()
limit = sys.getrecursionlimit()
# %%
del y
