import torch

from encoder import Encoder
from pipeline import encoded

torch.manual_seed(0)
encoder = Encoder()
before = encoder.lin.weight.clone()


def train(rows):
    for codes in encoded(encoder, rows):
        loss = codes.var()
        encoder.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in encoder.parameters():
                p.sub_(p.grad, alpha=0.1)


train(torch.randn(6, 4))
print("moved", not torch.equal(before, encoder.lin.weight))
