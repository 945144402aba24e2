"""A decorator of the program's own that remembers results: what its function keeps is named as its lines write it."""

import sys
import types

import pytest
import torch
from torch import nn

from graphwidget.capture.owners.own_objects import OwnObjects
from graphwidget.capture.owners.search import find
from graphwidget.diagnosis.source.edits.text_edit import apply_to
from graphwidget.diagnosis.wording import spoken
from tests.support.told import findings_of

TESTED = """import functools
def memoize(method):
    results = {}
    @functools.wraps(method)
    def wrapper(self, *key):
        if key not in results:
            results[key] = method(self, *key)
        return results[key]
    return wrapper
"""
TRIED = """import functools
def memoize(method):
    results = {}
    @functools.wraps(method)
    def wrapper(self, *key):
        try:
            return results[key]
        except KeyError:
            # the first time
            results[key] = method(self, *key)
            return results[key]
    return wrapper
"""
NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
    @memoize
    def vector(self, n):
        return torch.tanh(self.lin.weight[n])
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
LOOP = """for _ in range(3):
    loss = (torch.ones(2, 3) @ net.vector(2)).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("memo, line", [(TESTED, 7), (TRIED, 10)], ids=["asked", "tried"])
def test_the_dict_of_a_closure_is_named_with_the_line_that_stores_in_it(memo, line):
    cells = {1: memo, 2: NET, 3: LOOP}
    (found,) = findings_of(*cells.values())
    assert found.names == ("results[(2,)]",)
    assert found.stored_at is not None and (found.stored_at.cell, found.stored_at.line) == (1, line)
    (fix,) = found.fixes
    assert fix.id == "recompute_in_loop" and fix.verified
    names = {"torch": torch, "nn": nn}
    for text in apply_to(cells, fix.edits).values():
        exec(text, names)


DEFAULT = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
    def vector(self, n, scale=1.0, seen={}, *, more={}):
        if n not in KEPT:
            KEPT[n] = torch.tanh(self.lin.weight[n]) * scale
        return KEPT[n]
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""


def test_an_element_whose_key_no_text_names_is_named_by_its_position():
    text = TESTED.replace("if key", "key = (self, *key)\n        if key").replace("method(self, *key)", "method(*key)")
    (found,) = findings_of(text, NET, LOOP)
    assert found.names == ("list(results.values())[0]",)
    assert found.stored_at is not None and (found.stored_at.cell, found.stored_at.line) == (1, 8)


@pytest.mark.parametrize("kept", ["seen", "more"])
def test_what_an_argument_has_by_default_is_named_by_the_argument(kept):
    (found,) = findings_of(DEFAULT.replace("KEPT", kept), LOOP)
    assert found.names == (f"{kept}[2]",)
    assert found.stored_at is not None and found.stored_at.line == 7


MODULE = """import functools
import torch
from torch import nn
w = nn.Parameter(torch.ones(2))
def memo(function):
    results = {}
    @functools.wraps(function)
    def wrapper(*key):
        results[key] = results.get(key, None) or function(*key)
        return results[key]
    return wrapper
class Remembering:
    def __init__(self, function):
        self.function, self.kept = function, []
    def __call__(self, n):
        self.kept.append(self.function(n))
class Base:
    def __init__(self):
        super().__init__()
class Net(Base):
    shared = {}
    def __init__(self, n=1, m=None):
        super().__init__()
    def plain(self, n=1):
        return n
    @memo
    def vector(n): return w.sum() * n
    @staticmethod
    @memo
    def fixed(n): return w.sum() * n
    @property
    @memo
    def size(self): return w.sum() * 3
    row = Remembering(lambda n: w.sum() * n)
@memo
def alone(n): return w.sum() * n
def default(n, seen=[]): seen.append(w.sum() * n)
Net.vector(1), Net.fixed(2), Net().size, Net.row(4), alone(5), default(6)
Net.shared["one"] = w.sum() * 7
"""


def test_what_functions_and_classes_of_another_module_keep_is_found():
    module = types.ModuleType("of_the_programs_own")
    sys.modules[module.__name__] = module
    try:
        exec(MODULE, vars(module))
        own = list(OwnObjects(lambda: [module.__name__], lambda file: True).find(None, ()))
        found = find({}, others=own, shell=None, last_error=False, budget_s=10.0)
    finally:
        del sys.modules[module.__name__]
    paths = {one.path for one in found.holdings}
    begin = "of_the_programs_own:"
    assert {
        f"{begin}Net.vector.__closure__[results][(1,)]",
        f"{begin}Net.fixed.__closure__[results][(2,)]",
        f"{begin}Net.row.kept[0]",
        f"{begin}alone.__closure__[results][(5,)]",
        f"{begin}default.__defaults__[seen][0]",
        f"{begin}Net.shared['one']",
    } <= paths
    assert any(spoken(path) == "list(results.values())[0]" for path in paths)
    assert any(path == f"list({begin}Net.size.__closure__[results].values())[0]" for path in paths)
    given = {path.removeprefix(begin) for path, _, _ in own}
    assert not given & {"Net", "Base", "Net.plain", "Net.__init__", "Base.__init__", "memo", "nn", "torch"}
