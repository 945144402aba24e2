import torch

from .model import Tagger

torch.manual_seed(0)
tagger = Tagger()
before = tagger.out.weight.clone()
optimizer = torch.optim.Adam(tagger.parameters())
for _ in range(5):
    loss = tagger(torch.randn(2, 6, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("moved", not torch.equal(before, tagger.out.weight))
