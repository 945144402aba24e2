# verified: clone_before_inplace
# says: Read copies of `left` and `right`
# never says: This is not enough | detach | no_grad
# %%
import torch
from torch import nn

torch.manual_seed(0)


def turn(left, right, angle):
    return left * angle.cos() + right * angle.sin(), right * angle.cos() - left * angle.sin()


class Panner(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Conv1d(2, 2, 3, padding=1)
        self.angle = nn.Parameter(torch.tensor(0.3))

    def forward(self, sound):
        heard = self.filter(sound).transpose(0, 1)
        left, right = heard[0], heard[1]
        left[:, 4:], right[:, 4:] = turn(left[:, 4:], right[:, 4:], self.angle)
        return left * right
# %%
model = Panner()
for _ in range(2):
    loss = model(torch.randn(3, 2, 16)).pow(2).mean()
    loss.backward()
