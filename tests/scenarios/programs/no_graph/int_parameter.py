# title: An integer tensor cannot require grad
# kind: dtype_error
# truth: measured.json
# %%
import torch
# %%
steps = torch.tensor([1, 2, 3], requires_grad=True)
