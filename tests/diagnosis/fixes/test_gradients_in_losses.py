"""A loss of what `autograd.grad` returned: the gradient needs a graph, whatever way it takes to the loss."""

import pytest
from told import findings_of

NET = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(5, 3, requires_grad=True)
"""
WAYS = {
    "names": """
e = net(x).sum()
g, = torch.autograd.grad(e, x)
f = -g
loss = e.pow(2) + (f - 1).pow(2).mean()
loss.backward()
""",
    "a tuple of a function": """
def physics(x):
    energy = net(x).sum()
    force = -torch.autograd.grad(energy, x)[0]
    return energy, force
def train(target):
    energy, force = physics(x)
    loss = (energy - target) ** 2 + force.norm()
    loss.backward()
train(1.0)
""",
    "a dictionary of a module": """
class Potential(nn.Module):
    def forward(self, x):
        out = {}
        out["u"] = net(x).sum()
        out["du"] = torch.autograd.grad(out["u"], x)[0]
        return out
def criterion(out):
    return out["u"].abs() + out["du"].pow(2).sum()
model = Potential()
for step in range(2):
    out = model(x)
    total = criterion(out)
    total.backward()
    opt.step()
""",
    "an attribute and a list": """
class Field:
    def __init__(self):
        self.slopes = []
    def value(self, x):
        y = net(x)
        for i in range(1):
            self.slopes.append(torch.autograd.grad(y.sum(), x)[0])
        return y
field = Field()
y = field.value(x)
torch.autograd.backward(y.mean() + sum(s.norm() for s in field.slopes))
""",
    "networks in turn": """
nets = [net, nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))]
def both(one):
    u = one(x).sum()
    return {"u": u, "du": torch.autograd.grad(u, x)[0]}
found = [both(one) for one in nets]
joined = {k: torch.stack([r[k] for r in found]) for k in found[0]}
loss = joined["du"].var(0).mean() * joined["u"].mean()
loss.backward()
""",
    "written by keyword": """
from dataclasses import dataclass
@dataclass
class Result:
    energy: object
    forces: object
def run():
    e = net(x).sum()
    return Result(energy=e, forces=torch.autograd.grad(e, x)[0])
res = run()
(res.energy + res.forces.square().sum()).backward()
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_gets_a_graph(way):
    finding = next(one for one in findings_of(NET, WAYS[way]) if one.kind == "second_backward")
    (fix,) = finding.fixes
    assert fix.id == "create_graph" and fix.verified and "create_graph=True" in fix.edits[0].new


NOT_USED = {
    "only logged": """
e = net(x).sum()
g, = torch.autograd.grad(e, x)
seen = g.norm().item()
e.backward()
""",
    "detached": """
def run():
    y = net(x)
    g = torch.autograd.grad(y.sum(), x)[0]
    return y, g
y, g = run()
weight = g.detach().norm(dim=1)
(weight * y.squeeze()).sum().backward()
""",
    "returned beside what is used": """
class Potential(nn.Module):
    def forward(self, x):
        e = net(x).sum()
        return {"energy": e, "forces": torch.autograd.grad(e, x)[0]}
model = Potential()
out = model(x)
print(out["forces"].norm())
loss = out["energy"].pow(2)
loss.backward()
""",
    "used without grad mode": """
y = net(x)
g = torch.autograd.grad(y.sum(), x)[0]
with torch.no_grad():
    weight = g.norm(dim=1)
(weight * y.squeeze()).sum().backward()
""",
}


@pytest.mark.parametrize("how", NOT_USED)
def test_a_gradient_that_is_no_part_of_the_loss_needs_none(how):
    finding = next(one for one in findings_of(NET, NOT_USED[how]) if one.kind == "second_backward")
    assert finding.fixes[0].id == "retain_graph_earlier_call" and finding.fixes[0].verified
    assert all(fix.id != "create_graph" for fix in finding.fixes)
