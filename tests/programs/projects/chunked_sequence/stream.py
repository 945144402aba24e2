from dataclasses import dataclass

import torch


@dataclass
class Chunk:
    x: torch.Tensor
    y: torch.Tensor
    carry: torch.Tensor


def chunks(rnn, xs, ys, size):
    carry = torch.zeros(1, xs.shape[1], rnn.hidden_size)
    for start in range(0, len(xs), size):
        out, carry = rnn(xs[start : start + size], carry)
        yield Chunk(out, ys[start : start + size], carry)
