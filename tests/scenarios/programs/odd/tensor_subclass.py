# title: A subclass whose __torch_function__ counts: even .grad_fn and .shape go through it
# kind: nasty
# source: https://pytorch.org/docs/stable/notes/extending.html
# truth: measured.json
# %%
import torch
count = [0]
class Counting(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        count[0] += 1
        return super().__torch_function__(func, types, args, kwargs or {})
# %%
x = torch.randn(3).as_subclass(Counting).requires_grad_()
y = (x * 2).sum()
# %%
n0 = count[0]
# %%
n1 = count[0]
y.backward()
nb = count[0]
with torch._C.DisableTorchFunctionSubclass():
    quiet = y.grad_fn
n2 = count[0]
y.grad_fn
n3 = count[0]
