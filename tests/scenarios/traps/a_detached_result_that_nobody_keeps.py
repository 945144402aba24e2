# verified: detach
# says: throws its result away: `belief` keeps its graph | `belief = without_graph(belief)`
# never says: retain_graph=True
# %%
import torch
from torch import nn

torch.manual_seed(0)


def without_graph(state):
    """The same numbers, without their history."""
    if torch.is_tensor(state):
        return state.detach()
    return tuple(without_graph(one) for one in state)


def track(filter, optimizer, readings):
    belief = torch.zeros(3, 4)
    for reading in readings:
        without_graph(belief)
        belief = filter(reading, belief)
        loss = (belief[:, :2] - reading).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# %%
filter = nn.GRUCell(2, 4)
track(filter, torch.optim.Adam(filter.parameters()), torch.randn(4, 3, 2))
