# title: The error is caught and printed
# kind: second_backward
# truth: measured.json
# %%
import torch
a = torch.ones(2, requires_grad=True)
b = a.exp().sum()
# %%
b.backward()
try:
    b.backward()
except RuntimeError as error:
    print("caught", error)
