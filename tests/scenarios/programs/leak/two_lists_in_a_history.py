# title: A history with a list of losses and one of outputs
# kind: leak
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), 0.01)
history = {"loss": [], "out": []}
# %%
for i in range(20):
    x = torch.randn(16, 4)
    out = net(x)
    loss = (out - x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    history["loss"].append(loss)
    history["out"].append(out)
