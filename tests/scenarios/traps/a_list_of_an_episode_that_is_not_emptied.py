# verified: clear_buffer
# says: `policy.log_probs.clear()`
# %%
import torch, torch.nn as nn
torch.manual_seed(0)
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.log_probs = nn.Linear(3, 2), []
    def act(self, state):
        chosen = torch.distributions.Categorical(logits=self.net(state))
        action = chosen.sample()
        self.log_probs.append(chosen.log_prob(action))
policy = Policy()
opt = torch.optim.SGD(policy.parameters(), 0.1)
# %%
def finish():
    loss = -torch.stack(policy.log_probs).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
def main():
    for episode in range(3):
        for t in range(4):
            policy.act(torch.randn(3))
        finish()
main()
