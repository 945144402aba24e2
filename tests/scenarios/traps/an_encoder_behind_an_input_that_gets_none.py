# verified:
# says: `model.expand[0].bias` and `model.expand[0].weight` | returned None for its input `dose`, which is computed from them
# never says: `model.rate`
# %%
import torch
from torch import nn
torch.manual_seed(0)


class Decay(torch.autograd.Function):
    """A dose that decays at a rate, with a derivative of its own."""

    @staticmethod
    def forward(ctx, dose, rate, hours):
        kept = torch.exp(-rate * hours)
        ctx.save_for_backward(dose, kept)
        ctx.hours = hours
        return dose * kept

    @staticmethod
    def backward(ctx, grad):
        dose, kept = ctx.saved_tensors
        of_rate = (grad * dose * kept * -ctx.hours).sum(0)
        return None, of_rate, None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.expand = nn.Sequential(nn.Linear(2, 4), nn.Softplus())
        self.rate = nn.Parameter(torch.full((4,), 0.1))

    def forward(self, patient, hours):
        return Decay.apply(self.expand(patient), self.rate, hours).sum(1)


# %%
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
patients, level = torch.rand(20, 2), torch.rand(20)
for hours in (1.0, 2.0, 4.0):
    optimizer.zero_grad()
    loss = (model(patients, hours) - level).pow(2).mean()
    loss.backward()
    optimizer.step()
