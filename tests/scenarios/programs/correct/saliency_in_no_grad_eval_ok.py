# title: Gradients of the input, switched on again inside an evaluation
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 3)).eval()

def saliency(x):
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        scores = net(x)
        (slope,) = torch.autograd.grad(scores.max(1).values.sum(), x)
    return slope.abs()

@torch.no_grad()
def evaluate(batches):
    correct, maps = 0, []
    for x, y in batches:
        correct += (net(x).argmax(1) == y).sum().item()
        maps.append(saliency(x))
    return correct, torch.cat(maps)
# %%
batches = [(torch.randn(5, 4), torch.randint(3, (5,))) for _ in range(3)]
correct, maps = evaluate(batches)
