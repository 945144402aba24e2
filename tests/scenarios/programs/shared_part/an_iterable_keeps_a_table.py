# title: The object that a loop iterates over holds a table with a graph
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)

class Reader:
    def __init__(self):
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.table = self.scale * torch.arange(3.0)

    def __iter__(self):
        for i in range(4):
            yield self.table + i

reader = Reader()
w = torch.randn(3, requires_grad=True)
# %%
for batch in reader:
    loss = (batch * w).sum()
    loss.backward()
