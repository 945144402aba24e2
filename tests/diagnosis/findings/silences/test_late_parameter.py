"""Parameters that a module makes while it runs."""

from told import findings_of, said

NET = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.s = nn.Linear(3, 3), None
    def forward(self, x):
        h = self.body(x)
        if self.s is None:
            self.s = nn.Parameter(h.detach().std())
        return h * self.s
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = Scaled(), nn.Linear(3, 1)
    def forward(self, x):
        return self.last(self.first(x))
net = Net()
"""
LOOP = """
for _ in range(8):
    opt.zero_grad()
    net(torch.ones(2, 3)).pow(2).sum().backward()
    opt.step()
"""
ALL = "opt = torch.optim.SGD([{'params': [p]} for p in net.parameters()], 0.1)"


def test_a_parameter_of_the_first_pass_that_the_optimizer_lacks_is_named():
    (found,) = findings_of(NET, ALL, LOOP)
    assert found.headline == "`net.first.s` is never trained: no optimizer holds it."
    assert (found.cause.cell, found.cause.line) == (1, 9)


def test_after_a_pass_it_is_held_and_a_choice_of_parameters_may_be_meant():
    assert said(NET, f"net(torch.ones(2, 3))\n{ALL}", LOOP) == []
    assert said(NET, "opt = torch.optim.SGD([{'params': list(net.last.parameters())}], 0.1)", LOOP) == []
