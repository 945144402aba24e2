# verified:
# never says: is a constant
# %%
import math
import torch
from torch import nn
torch.manual_seed(0)
tagger, prior = nn.Linear(5, 3), nn.Linear(5, 3)
opt = torch.optim.SGD(tagger.parameters(), lr=0.1)
words, tags = torch.randn(8, 5), torch.arange(8) % 3
def mistakes(scores):
    return (scores.argmax(dim=1) != tags).float().sum()
# %% a margin of what is chosen, a maximum that cancels, a weight that waits
for step in range(3):
    scores = tagger(words)
    best = scores[0].argmax()
    margin = (best != tags[0]).float()
    loss = margin + scores[0][best] - scores[0][tags[0]] + 0.5 * math.log(2 * math.pi)
    most = scores[1].data.max()
    loss = loss + most + (scores[1] - most).exp().sum().log() - scores[1][tags[1]]
    loss = loss + (0.1 if step > 5 else 0.0) * mistakes(scores)
    loss = loss + mistakes(prior(words)) + mistakes(scores.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
