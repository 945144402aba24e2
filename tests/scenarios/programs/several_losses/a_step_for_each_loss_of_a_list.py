# title: Losses of one forward pass, and a step after each
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 4)
opt = torch.optim.SGD(model.parameters(), 0.1)
x = torch.randn(5, 3)
# %%
out = model(x)
losses = [out[:, i].exp().mean() for i in range(4)]
for loss in losses:
    opt.zero_grad()
    loss.backward()
    opt.step()
