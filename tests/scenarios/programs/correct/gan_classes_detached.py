# title: GAN with classes: fake detached for the critic, recomputed graph for the generator
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)
class Maker(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
    def forward(self, z):
        return self.body(z)
maker, judge = Maker(), nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1))
step_m, step_j = (torch.optim.SGD(m.parameters(), 0.05) for m in (maker, judge))
# %%
def one_round(real):
    def bce(out, target):
        return nn.functional.binary_cross_entropy_with_logits(out, torch.full_like(out, target))
    fake = maker(torch.randn(5, 2))
    step_j.zero_grad()
    (bce(judge(real), 1.0) + bce(judge(fake.detach()), 0.0)).backward()
    step_j.step()
    step_m.zero_grad()
    bce(judge(fake), 1.0).backward()
    step_m.step()
# %%
for _ in range(4):
    one_round(torch.randn(5, 3))
