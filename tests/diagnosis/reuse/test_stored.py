"""The line that keeps a carrier."""

import pytest
from told import findings_of, record_of

from graphwidget.diagnosis.reuse.stored import stored_at

CLASS = "class Table:\n    def __init__(self):\n        self.known, self.h = {}, None\n"
PUT = "    def put(self, k, v):\n        self.known[k] = v\n        self.h = v\n    def reset(self):\n        self.h = None\n"


@pytest.mark.parametrize(
    ("paths", "line"), [(["t.known['a']"], 5), (["t.h"], 6), (["v"], None), (["t.other"], None), ([], None)]
)
def test_the_one_line_that_stores(paths, line):
    found = stored_at(record_of(CLASS + PUT), paths)
    assert (found.line if found is not None else None) == line


def test_of_several_lines_none_is_said():
    assert stored_at(record_of(CLASS + PUT + "    def more(self, v):\n        self.h = v * 2\n"), ["t.h"]) is None


def test_what_begins_it_does_not_store_it():
    begun = "    def begin(self):\n        self.h = torch.zeros(2)\n        self.known = {}\n    def cut(self):\n        self.h = self.h.detach()\n"
    record = record_of(CLASS + PUT + begun)
    assert [stored_at(record, [path]).line for path in ("t.h", "t.known['a'][1]")] == [6, 5]


def test_a_finding_says_where_its_carrier_is_kept():
    cell = (
        CLASS
        + PUT.replace("self.h = v", "pass")
        + "t, w = Table(), torch.ones(2, requires_grad=True)\nt.put('a', w.exp())"
    )
    (found,) = findings_of(cell, "for _ in range(2):\n    t.known['a'].sum().backward()")
    assert (found.stored_at.cell, found.stored_at.line) == (1, 5)


def test_a_line_that_only_shortens_a_list_stores_nothing():
    text = "class Steps:\n    def __init__(self):\n        self.ets = []\n    def step(self, e):\n        self.ets = self.ets[-3:]\n        self.ets.append(e)\n"
    found = stored_at(record_of(text), ["s.ets[0]"])
    assert found is not None and found.line == 6


KEPT = """from functools import cached_property
class Kernel:
    def __init__(self, scale):
        self.scale = scale
    @cached_property
    def norm(self):
        return self.exp().sum()
    def exp(self):
        return self.scale.exp()
kernel = Kernel(torch.ones(2, requires_grad=True))"""


def test_a_decorator_keeps_what_a_method_computed():
    (found,) = findings_of(KEPT, "for _ in range(2):\n    (kernel.norm * 2).backward()")
    assert (found.stored_at.cell, found.stored_at.line) == (1, 5)
    assert "and stored by `@cached_property` (In[1], line 5)" in found.text


def test_a_line_that_stores_comes_before_a_decorator_of_that_name():
    text = KEPT + "\nclass Other:\n    def set(self, v):\n        self.norm = v\n"
    assert stored_at(record_of(text), ["other.norm"]).line == 13


LAGGED = """class Window:
    def __init__(self):
        self.last = []
    def push(self, features):
        self.last.append(features)
        del self.last[:-2]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(2, 3), nn.Linear(3, 1)
    def forward(self, x):
        features = self.body(x).tanh()
        return self.head(features), features
net, window = Net(), Window()
opt = torch.optim.Adam(net.parameters())"""
FRAMES = """for at in range(4):
    out, features = net(torch.rand(4, 2))
    loss = out.mean()
    if window.last:
        loss = loss + (features - window.last[0]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    window.push(features)"""


def test_where_a_fix_stores_it_without_its_graph_is_where_to_look():
    """What computed it in each pass, in a model, is right as it is."""
    (found,) = findings_of(LAGGED, FRAMES)
    assert "window.last[0]" in found.carriers and found.fixes[0].id == "detach"
    assert (found.cause.cell, found.cause.line) == (1, 5) == found.fixes[0].at
    assert "built in In[1], line 12" in found.text and "stored by `self.last.append(features)`" in found.text


def test_what_is_computed_once_before_the_passes_is_to_be_computed_again_where_it_was():
    before = "out, features = net(torch.ones(4, 2))\nwindow.push(features)\n"
    passes = "for at in range(3):\n    loss = net.head(window.last[0]).mean()\n    loss.backward()\n    opt.step()"
    (found,) = findings_of(LAGGED, before + passes)
    assert found.fixes[0].id != "detach" and (found.cause.cell, found.cause.line) == (2, 1)
