# title: The backward cell is run twice in the notebook
# kind: second_backward
# source: https://github.com/karpathy/nn-zero-to-hero/issues/31
# source: https://github.com/uakarsh/latr/issues/5
# run_order: 1 2 3 3
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
W = torch.randn(5, 3, requires_grad=True)
# %%
probs = torch.randn(4, 5).matmul(W).softmax(1)
loss = -probs[:, 0].log().mean()
# %%
W.grad = None
loss.backward()
W.data += -0.1 * W.grad
