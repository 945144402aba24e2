# title: A history of rows with numbers and tensors
# kind: leak
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
rows = []
# %%
for i in range(10):
    out = net(torch.randn(4, 3))
    loss = out.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    rows.append({"step": i, "loss": loss, "out": out})
