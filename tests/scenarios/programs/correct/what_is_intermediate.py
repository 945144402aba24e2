# title: view -> Linear -> *5 -> sum: which node loses which buffer
# kind: ok
# source: seed 004 (https://discuss.pytorch.org/t/which-is-freed-which-is-not/8636)
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
a = torch.tensor([2., 3.], requires_grad=True).view(2, 1)
l = nn.Linear(1, 3)
y = l(a)
z = y * 5
o = torch.sum(z)
# %%
o.backward()
# %%
def freed(node, name):
    try:
        getattr(node, name)
        return False
    except RuntimeError as err:
        return "freed" in str(err)
lost = {"z._saved_other": freed(z.grad_fn, "_saved_other"), "y._saved_mat1": freed(y.grad_fn, "_saved_mat1"), "y._saved_mat2": freed(y.grad_fn, "_saved_mat2")}
lost
