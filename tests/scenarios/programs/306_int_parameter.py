# title: An integer tensor cannot require grad
# kind: dtype_error
# truth: 306_int_parameter.json
# %%
import torch
# %%
steps = torch.tensor([1, 2, 3], requires_grad=True)
