# title: Two calls of backward on one line
# kind: second_backward
# truth: 474_two_calls_on_one_line.json
# %%
import torch; torch.manual_seed(0); w = torch.randn(3, requires_grad=True)
# %%
y = w.sin(); y2 = y * y
l1 = y2.sum(); l2 = y2.mean()
l1.backward(); l2.backward()
