# title: A recurrent language model keeps its state over batches, in a function
# kind: second_backward
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(5, 4), nn.LSTM(4, 4), nn.Linear(4, 5)
    def forward(self, x, state=None):
        y, state = self.rnn(self.emb(x), state)
        return self.out(y), state
lm = LM(); opt = torch.optim.Adam(lm.parameters()); crit = nn.CrossEntropyLoss()
# %%
def train_epoch(data):
    state = None
    total = 0
    for i in range(0, len(data) - 3, 3):
        out, state = lm(data[i:i+3], state)
        loss = crit(out.view(-1, 5), data[i+1:i+4].view(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total
train_epoch(torch.randint(5, (13, 2)))
