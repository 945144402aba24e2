# title: backward called in a user thread
# kind: nasty
# source: https://pytorch.org/docs/stable/notes/autograd.html#multithreaded-autograd
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
import threading
net = nn.Linear(3, 1)
loss = net(torch.randn(2, 3)).pow(2).sum()
caught = []
# %%
def work():
    try:
        loss.backward()
    except RuntimeError as err:
        caught.append(str(err)[:44])
# %%
ts = [threading.Thread(target=work) for _ in range(2)]
for t in ts:
    t.start()
    t.join()
# %%
caught
