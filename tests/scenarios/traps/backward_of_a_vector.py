# verified: scalar_loss pass_gradient
# says: `y` has 5 values
# %%
import torch
x = torch.linspace(-1, 1, 5, requires_grad=True)
y = x ** 2
y.backward()
x.data.add_(-0.1 * x.grad)
