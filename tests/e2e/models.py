"""Cells that build large graphs quickly: real module trees and real operations on tiny tensors.

The browser tests run them in a notebook, the benchmarks in a notebook or in a process of their own.
"""

from __future__ import annotations

__all__ = ["DEEP", "GPT2", "LSTM", "WIDE"]

# GPT-2's tree of modules, 12 blocks and a tied embedding, with 8 numbers where it has 768: about 850 nodes.
GPT2 = """\
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(w, 2))
        scores = (q @ k.transpose(-2, -1)) / (w // self.heads) ** 0.5
        scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
        mixed = F.softmax(scores, -1) @ v
        return self.c_proj(mixed.transpose(1, 2).reshape(b, t, w))
class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), MLP(width)
    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))
class GPT2(nn.Module):
    def __init__(self, words=32, width=8, blocks=12, heads=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(16, width)
        self.h, self.ln_f = nn.ModuleList(Block(width, heads) for _ in range(blocks)), nn.LayerNorm(width)
    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T
model = GPT2()
tokens = torch.randint(32, (2, 9))
logits = model(tokens[:, :-1])
loss = F.cross_entropy(logits.reshape(-1, 32), tokens[:, 1:].reshape(-1))"""

# An LSTM by hand, 520 steps with a loss each: about 10,400 nodes.
LSTM = """\
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
class LSTM(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.x2h, self.h2h = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
    def forward(self, x, h, c):
        i, f, g, o = (self.x2h(x) + self.h2h(h)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
lstm, head = LSTM(4), nn.Linear(4, 3)
h = c = torch.zeros(1, 4)
total = 0
for t in range(520):
    h, c = lstm(torch.randn(1, 4), h, c)
    total = total + F.cross_entropy(head(h), torch.tensor([t % 3]))"""

# A random graph of NODES small operations: each builds on the newest tensor or on one of the last twenty.
WIDE = """\
import random, torch
def wide(nodes, seed=0):
    pick = random.Random(seed)
    made = [torch.ones(2, requires_grad=True)]
    for k in range(nodes - 1):
        kind, a = pick.randrange(4), made[-1]
        if kind == 0: made.append(a * 0.5)
        elif kind == 1: made.append(a + made[-pick.randrange(1, min(20, len(made)) + 1)])
        elif kind == 2: made.append(a.tanh())
        else: made.append(a * made[-pick.randrange(1, min(20, len(made)) + 1)])
    return made[-1].sum()
loss = wide({nodes})"""

# One chain of NODES operations.
DEEP = """\
import torch
def deep(nodes):
    x = torch.ones(2, requires_grad=True)
    for k in range(nodes - 1):
        x = x * 0.9 if k % 2 else x.tanh()
    return x.sum()
loss = deep({nodes})"""
