# verified:
# says: has 12 values, of shape [4, 3]. `return (predicted - wanted).abs()` (In[1], line 7) made it.
# %%
import torch, torch.nn as nn
torch.manual_seed(0)


class Distance(nn.Module):
    def forward(self, predicted, wanted):
        return (predicted - wanted).abs()


class Forecaster:
    def __init__(self):
        self.net, self.distances = nn.Linear(5, 3), [Distance(), Distance()]

    def fit(self, days, rain):
        for at in range(len(self.distances)):
            self.distances[at](self.net(days), rain).backward()
# %%
Forecaster().fit(torch.randn(4, 5), torch.rand(4, 3))
