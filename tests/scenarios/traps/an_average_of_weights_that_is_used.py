# verified: detach
# says: Write it detached: `p.mul_(self.decay).add_((q * (1 - self.decay)).detach())`
# never says: self.decay.detach()
# %%
import copy, torch, torch.nn as nn
torch.manual_seed(0)
class Average:
    def __init__(self, net, decay):
        self.net, self.decay = copy.deepcopy(net).requires_grad_(False), decay
    def update(self, net):
        for p, q in zip(self.net.parameters(), net.parameters()):
            p.mul_(self.decay).add_(q * (1 - self.decay))
# %%
student = nn.Linear(3, 2)
teacher, opt = Average(student, 0.9), torch.optim.SGD(student.parameters(), 0.1)
for step in range(4):
    x = torch.randn(5, 3)
    loss = (student(x) - teacher.net(x)).pow(2).mean() + student(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    teacher.update(student)
