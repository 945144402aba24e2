import torch
from torch import nn

from stream import chunks


def train(xs, ys):
    rnn, head = nn.GRU(2, 5), nn.Linear(5, 1)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
    start = rnn.weight_hh_l0.detach().clone()
    for chunk in chunks(rnn, xs, ys, 3):
        loss = (head(chunk.x) - chunk.y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("moved", not torch.equal(start, rnn.weight_hh_l0))


if __name__ == "__main__":
    torch.manual_seed(0)
    train(torch.randn(12, 4, 2), torch.randn(12, 4, 1))
