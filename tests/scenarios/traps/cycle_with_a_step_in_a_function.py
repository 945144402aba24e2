# verified: set_grad_none
# says: Set `w.grad` to None after the line that uses it last. | an optimizer too, must be given what it returns
# never says: grads = torch.autograd.grad | costs nothing | fit:w.grad = None
# %%
import torch
def fit(seed):
    torch.manual_seed(seed)
    w = torch.randn(50, requires_grad=True)
    opt = torch.optim.SGD([w], 0.1)
    loss = (w.tanh() - 1).pow(2).sum()
    loss.backward(create_graph=True)
    opt.step()
    return loss.item()
# %%
scores = [fit(s) for s in range(5)]
