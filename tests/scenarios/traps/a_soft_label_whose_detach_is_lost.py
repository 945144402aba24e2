# verified:
# says: `soft.detach()` (In[2], line 4) returns a new tensor, and nothing takes it: `soft` keeps its graph.
# never says: log_q = log_q.detach()
# %%
import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
views = [(x, x + 0.1 * torch.randn_like(x)) for x in torch.randn(4, 8, 6)]


# %%
def agreement(weak, strong):
    log_q = F.log_softmax(net(strong), 1)
    soft = F.softmax(net(weak) / 0.5, 1)
    soft.detach()
    return F.kl_div(log_q, soft, reduction="batchmean")


for weak, strong in views:
    loss = agreement(weak, strong)
    opt.zero_grad()
    loss.backward()
    opt.step()
