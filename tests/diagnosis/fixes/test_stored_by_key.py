"""State that a statement puts into a container by a key that it computes: it is detached there, if nothing reads it."""

import pytest
from told import findings_of

PROGRAM = """
from itertools import cycle, islice
class Memory:
    def __init__(self): self.last, self.log = {{}}, []
    def guess(self, key): return {get}
    def keep(self, key, u):
        {store}
        return u
class Solver(Memory):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)
    def __call__(self, x, key):
        u = self.guess(key)
        u = torch.tanh(self.net(x) + u)
        {end}
def train(solve):
    opt = torch.optim.SGD(solve.net.parameters(), 0.1)
    for key in islice(cycle('abc'), 8):
        {loss}
        opt.zero_grad()
        loss.backward()
        opt.step()
train(Solver())
"""
GET = "self.last.get(key, torch.zeros(4))"


def first(store="self.last[key] = u", end="return self.keep(key, u)", loss="", get=GET):
    loss = loss or "loss = solve(torch.randn(4), key).pow(2).sum()"
    (finding,) = findings_of(PROGRAM.format(store=store, end=end, loss=loss, get=get))
    assert finding.kind == "second_backward"
    return finding.fixes[0]


@pytest.mark.parametrize(
    ("store", "get", "new"),
    [
        ("self.last[key] = u", GET, "self.last[key] = u.detach()"),
        ("self.last.update({key: u})", GET, "self.last.update({key: u.detach()})"),
        ("self.last.setdefault(key, u)", GET, "self.last.setdefault(key, u.detach())"),
        (
            "self.last.setdefault('x', {})[key] = u",
            "self.last.get('x', {}).get(key, torch.zeros(4))",
            "self.last.setdefault('x', {})[key] = u.detach()",
        ),
        (
            "self.last[key] = {'u': u, 'n': 3}",
            "self.last.get(key, {'u': torch.zeros(4)})['u']",
            "self.last[key] = {'u': u.detach(), 'n': 3}",
        ),
        (
            "out = {'u': u, 'w': u * 2}; self.last[key] = dict(out)",
            "sum(self.last.get(key, {'u': torch.zeros(4)}).values())",
            "out = {'u': u, 'w': u * 2}; self.last[key] = {k: v.detach() for k, v in out.items()}",
        ),
        (
            "self.log.append(u)",
            "self.log[-3] if len(self.log) > 2 else torch.zeros(4)",
            "self.log.append(u.detach())",
        ),
    ],
)
def test_it_is_stored_detached(store, get, new):
    fix = first(store, get=get)
    assert fix.id == "detach" and fix.verified and fix.edit[-1] == f"+ {new}"


@pytest.mark.parametrize(
    ("end", "loss"),
    [
        ("return self.keep(key, u)", "solve(torch.randn(4), key); loss = solve.guess(key).pow(2).sum()"),
        ("return self.keep(key, u)", "solve(torch.randn(4), key); loss = solve.last[key].pow(2).sum()"),
        ("self.keep(key, u); return self.last[key]", ""),
        ("self.keep(key, u); return self.guess(key)", ""),
        ("return self.keep(key, u)", "loss = sum(solve(torch.randn(4), key).sum() for _ in range(2))"),
        (
            "return self.keep(key, u)",
            "u = solve(torch.randn(4), key)\n        loss = (u + solve(torch.randn(4), key)).sum()",
        ),
        (
            "for _ in range(2): u = self.keep(key, torch.tanh(self.net(x) + self.guess(key)))\n        return u",
            "",
        ),
    ],
)
def test_not_where_the_same_pass_reads_it(end, loss):
    fix = first(end=end, loss=loss)
    assert "u.detach()" not in fix.edit[-1]
