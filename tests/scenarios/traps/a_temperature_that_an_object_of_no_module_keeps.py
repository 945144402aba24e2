# verified:
# says: no optimizer holds it | `self.heat = torch.ones(1, requires_grad=True)` | [*model.parameters(), objective.heat]
# never says: Parameter( | .detach()
# The contrastive objective is no module, and its temperature is to be learned.
# %%
import torch
from torch.nn import functional as F

torch.manual_seed(0)


class Objective:
    def __init__(self):
        self.heat = torch.ones(1, requires_grad=True)

    def __call__(self, left, right):
        scores = F.normalize(left, dim=1) @ F.normalize(right, dim=1).T / self.heat
        return F.cross_entropy(scores, torch.arange(len(left)))


def fit(model, objective, pairs):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for left, right in pairs:
        opt.zero_grad()
        loss = objective(model(left), model(right))
        loss.backward()
        opt.step()
    return loss.item()
# %%
encoder, contrast = torch.nn.Linear(8, 4), Objective()
views = [(x, x + 0.1 * torch.randn(6, 8)) for x in torch.randn(6, 6, 8)]
fit(encoder, contrast, views)
