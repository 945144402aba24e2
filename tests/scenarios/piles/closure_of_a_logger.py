# holder: rows
# iterations: N
# %%
N = 10
import torch


def logger():
    rows = []

    def log(**values):
        rows.append(values)
        return len(rows)

    return log


log = logger()
w = torch.randn(4, requires_grad=True)
# %%
for i in range(N):
    loss = (w * torch.randn(4)).exp().sum()
    loss.backward()
    log(step=i, loss=loss)
