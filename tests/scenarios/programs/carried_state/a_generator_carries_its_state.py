# title: A generator carries its state from one item to the next
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
def stream():
    h = torch.zeros(3)
    while True:
        h = torch.tanh(h + w)
        yield h
# %%
for i, h in enumerate(stream()):
    if i == 3: break
    h.sum().backward()
