# title: A moving average of weights keeps its graph
# kind: second_backward
# truth: measured.json
# %%
import torch, copy
torch.manual_seed(0)
q = torch.nn.Linear(3, 2)
target = {k: p.clone() for k, p in q.named_parameters()}
opt = torch.optim.SGD(q.parameters(), 0.1)

def q_target(x):
    return x @ target["weight"].T + target["bias"]
# %%
for step in range(4):
    s, s2 = torch.randn(6, 3), torch.randn(6, 3)
    y = q_target(s2).max(1).values
    loss = (q(s).max(1).values - y).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    for k, p in q.named_parameters():
        target[k] = 0.99 * target[k] + 0.01 * p
