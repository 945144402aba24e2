# title: A GAN trainer keeps the fake in an attribute
# kind: second_backward
# truth: measured.json
# %%
import torch, torch.nn as nn
class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 3)
    def forward(self, z):
        return self.net(z)
class Run:
    def __init__(self):
        self.G, self.D = G(), nn.Linear(3, 1)
        self.optG = torch.optim.SGD(self.G.parameters(), .1)
        self.optD = torch.optim.SGD(self.D.parameters(), .1)
    def step(self, real):
        self.fake = self.G(torch.randn(4, 2))
        self.update_d(real)
        self.update_g()
    def update_d(self, real):
        loss = self.D(self.fake).mean() - self.D(real).mean()
        self.optD.zero_grad()
        loss.backward()
        self.optD.step()
    def update_g(self):
        loss = -self.D(self.fake).mean()
        self.optG.zero_grad()
        loss.backward()
        self.optG.step()
# %%
torch.manual_seed(0)
run = Run()
# %%
for real in torch.randn(3, 4, 3):
    run.step(real)
