# title: LBFGS with a line search and a penalty in its closure
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

class Fit:
    def __init__(self):
        self.theta = nn.Parameter(torch.zeros(3))
        self.evaluations = 0

    def closure(self):
        optimizer.zero_grad()
        self.evaluations += 1
        residual = features @ self.theta - target
        objective = residual.square().mean() + 1e-3 * self.theta.norm()
        if objective.requires_grad:
            objective.backward()
        return objective

features, target = torch.randn(20, 3), torch.randn(20)
fit = Fit()
optimizer = torch.optim.LBFGS([fit.theta], max_iter=4, line_search_fn="strong_wolfe")
# %%
history = [float(optimizer.step(fit.closure)) for _ in range(2)]
