# title: LSTM state stored on the module between batches
# kind: second_backward
# source: https://github.com/sgadgil6/cnslab_fmri/issues/4
# source: https://github.com/pytorch/pytorch/issues/2769
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.out = nn.Linear(4, 1)
        self.hidden = (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))
    def forward(self, x):
        y, self.hidden = self.lstm(x, self.hidden)
        return self.out(y[-1])
model = Net()
opt = torch.optim.Adam(model.parameters())
# %%
def train_step(x):
    opt.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    opt.step()
    return loss.item()
# %%
for i in range(3):
    train_step(torch.randn(5, 2, 3))
