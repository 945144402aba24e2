# title: A moving baseline kept on an object with its graph
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
class Baseline:
    value = 0.0
    def update(self, loss):
        self.value = 0.9 * self.value + 0.1 * loss
        return self.value
base = Baseline()
w = torch.randn(3, requires_grad=True)
# %%
for step in range(3):
    loss = (w * torch.randn(3)).exp().sum()
    advantage = loss - base.update(loss)
    advantage.backward()
