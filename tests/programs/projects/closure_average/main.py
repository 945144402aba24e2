import torch

from steps import make_step

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
before = model[0].weight.clone()
step = make_step(model, torch.optim.SGD(model.parameters(), lr=0.05))
for _ in range(4):
    step(torch.randn(16, 3), torch.randn(16))
print("moved", not torch.equal(before, model[0].weight))
