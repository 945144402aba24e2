# verified:
# says: No parameter of `self.gravity` is passed | *self.gravity.parameters()
# never says: Take `
# A solver in a custom Function gets the field as an object. That its forward runs under `no_grad` is not the cause.
# %%
import torch
from torch import nn

torch.manual_seed(0)


class Solver(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gravity, start, h):
        with torch.no_grad():
            orbit = [start]
            for _ in range(4):
                orbit.append(orbit[-1] + h * gravity(orbit[-1]))
        ctx.gravity, ctx.h = gravity, h
        ctx.save_for_backward(*orbit)
        return orbit[-1]

    @staticmethod
    def backward(ctx, adjoint):
        for place in reversed(ctx.saved_tensors[:-1]):
            with torch.enable_grad():
                place = place.detach().requires_grad_()
                (pulled,) = torch.autograd.grad(ctx.gravity(place), place, adjoint)
            adjoint = adjoint + ctx.h * pulled
        return None, adjoint, None


class Orbits(nn.Module):
    def __init__(self):
        super().__init__()
        self.gravity = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, start):
        return Solver.apply(self.gravity, start, 0.1)


orbits = Orbits()
optimizer = torch.optim.SGD(orbits.parameters(), lr=0.1)
# %%
for night in range(3):
    optimizer.zero_grad()
    error = (orbits(torch.randn(4, 2)) - 1).pow(2).mean()
    error.backward()
    optimizer.step()
