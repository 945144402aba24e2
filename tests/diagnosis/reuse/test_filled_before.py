"""A storage that is filled in place before the passes which read it: it is named, and filled detached."""

import pytest
from told import findings_of

STORAGE = """class Storage:
    def __init__(self):
        self.obs, self.logp, self.i = torch.zeros(4, 2, 3), torch.zeros(4, 2), 0
    def insert(self, obs, logp):
        self.obs[self.i] = obs
        {write}
        self.i += 1
    def batches(self):
        flat = [x.flatten(0, 1) for x in (self.obs, self.logp)]
        for index in torch.arange(8).chunk(2):
            yield [x[index] for x in flat]
    def all(self):
        return {{"obs": self.obs.flatten(0, 1), "logp": torch.cat([self.logp, self.logp]).flatten()[:8]}}
"""
TRAIN = """net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def collect():
    store = Storage()
    for _ in range(4):
        obs = torch.randn(2, 3)
        store.insert(obs, net(obs).squeeze(-1))
    return store
def update(store):
    {passes}
        loss = ((net(obs).squeeze(-1) - old).exp() * 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
for it in range(2):
    store = collect()
    update(store)
"""
GENERATOR = "for obs, old in store.batches():"
DICT = "for obs, old in (tuple(store.all().values()) for _ in range(2)):"
INDEX = "for obs, old in ((store.obs[k], store.logp[k]) for k in range(2)):"


def update_of(write, passes=GENERATOR):
    found, *_ = findings_of(STORAGE.format(write=write), TRAIN.format(passes=passes))
    return found


@pytest.mark.parametrize("passes", [GENERATOR, DICT, INDEX], ids=["by a generator", "in a dict", "by an index"])
@pytest.mark.parametrize(
    ("write", "detached"),
    [
        ("self.logp[self.i] = logp", "self.logp[self.i] = logp.detach()"),
        ("self.logp[self.i].copy_(logp)", "self.logp[self.i].copy_(logp.detach())"),
        ("self.logp[self.i] += logp * 2", "self.logp[self.i] += (logp * 2).detach()"),
        ("self.logp[self.i], _ = logp, obs", "self.logp[self.i], _ = logp.detach(), obs"),
    ],
    ids=["assigned", "copied", "added", "among others"],
)
def test_a_storage_is_filled_detached(write, detached, passes):
    found = update_of(write, passes)
    assert found.names[0] == "store.logp"
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 6)
    assert found.text.startswith("`store.logp` was written in place")
    fix = found.fixes[0]
    assert (fix.id, fix.verified, fix.at) == ("detach", True, (1, 6))
    assert f"Write it detached: `{detached}`" in fix.text
    assert "through `store.logp`" in fix.price


def test_all_that_was_filled_is_written_detached():
    code = """class Rollout:
    def __init__(self):
        self.values, self.logp = torch.zeros(5, 2), torch.zeros(4, 2)
    def insert(self, i, value, logp):
        self.values[i] = value
        self.logp[i] = logp
    def batches(self):
        gain = torch.zeros(4, 2)
        for t in reversed(range(4)):
            gain[t] = 1 + self.values[t + 1] * 0.9 - self.values[t]
        gain = gain / gain.std()
        for t in range(4):
            yield self.logp[t], gain[t]
"""
    train = """net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
store = Rollout()
for i in range(4):
    out = net(torch.randn(2, 3))
    store.insert(i, out[:, 0], out[:, 1])
store.values[-1] = 0.0
for old, gain in store.batches():
    loss = ((net(torch.randn(2, 3))[:, 1] - old).exp() * gain).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    found, *_ = findings_of(code, train)
    fix = found.fixes[0]
    assert fix.verified and {edit.new for edit in fix.edits} == {".detach()"}
    assert {edit.start[0] for edit in fix.edits} == {5, 6}
    assert "`self.logp[i] = logp.detach()` (In[1], line 6)" in fix.text
    assert "`self.values[i] = value.detach()` (In[1], line 5)" in fix.text


def test_what_trains_through_the_storage_alone_is_not_detached_there():
    code = """enc, dec = nn.Linear(3, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
store = Storage()
for _ in range(4):
    store.insert(enc(torch.randn(2, 3)), torch.zeros(2))
for obs, _ in store.batches():
    loss = dec(obs).exp().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    found, *_ = findings_of(STORAGE.format(write="self.logp[self.i] = logp"), code)
    assert found.names[0] == "store.obs"
    assert found.fixes[0].id == "recompute_in_loop"
    assert not any("Write it detached" in fix.text for fix in found.fixes)


def test_what_a_pass_writes_for_itself_keeps_its_graph():
    code = """cell, head = nn.Linear(3, 2), nn.Linear(2, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
class Memory:
    def __init__(self):
        self.h = torch.zeros(4, 2)
    def put(self, i, h):
        self.h[i] = h
memory = Memory()
for t in range(3):
    memory.put(t, cell(torch.randn(3)))
    loss = head(memory.h.flip(0)).exp().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    found, *_ = findings_of(code)
    assert found.names[0] == "memory.h"
    assert "`memory.h = memory.h.detach()` after In[1], line 13" in found.fixes[0].text
    assert not any("Write it detached" in fix.text for fix in found.fixes)


def test_a_penalty_on_weights_is_no_use_of_the_network():
    code = """enc, dec = nn.Linear(3, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
def train(store):
    for epoch in range(2):
        loss = dec(store.all()["obs"]).exp().sum() + enc.weight.pow(2).sum() + enc.bias.pow(2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
for it in range(2):
    store = Storage()
    for _ in range(4):
        store.insert(enc(torch.randn(2, 3)), torch.zeros(2))
    train(store)
"""
    found, *_ = findings_of(STORAGE.format(write="self.logp[self.i] = logp"), code)
    assert found.names[0] == "store.obs"
    assert found.fixes[0].id == "recompute_in_loop"


def test_a_storage_of_numbers_is_no_finding():
    assert not findings_of(STORAGE.format(write="self.logp[self.i] = logp.detach()"), TRAIN.format(passes=GENERATOR))
