# verified:
# says: detach what one pass hands to the next
# never says: in the code that
# %%
import torch
from torch import nn
torch.manual_seed(0)
rnn = nn.RNN(2, 5)
opt = torch.optim.SGD(rnn.parameters(), 0.1)
def chunks(seq, n):
    h = None
    for part in seq.split(n):
        out, h = rnn(part, h)
        yield out
# %%
for out in chunks(torch.randn(12, 3, 2), 4):
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
