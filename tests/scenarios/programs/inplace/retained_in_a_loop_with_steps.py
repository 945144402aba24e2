# title: retain_graph in a loop with steps, the forward pass outside
# kind: inplace
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 2)
pred = net(x)
# %%
for i in range(3):
    loss = (pred - i).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
