# title: .data / no_grad-with-.data change between forward and backward is not checked: silently wrong gradient
# kind: silent_wrong_grad
# source: https://github.com/karpathy/nn-zero-to-hero/issues/31
# source: https://pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
# truth: measured.json
# %%
import torch
w = torch.tensor([1., 2.], requires_grad=True)
x = torch.tensor([3., 4.], requires_grad=True)
y = (w * x).sum()
# %%
w.data += 10
# %%
y.backward()
