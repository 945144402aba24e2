"""A `with` around a loop that keeps what the first pass made is put inside the loop, whoever runs the passes."""

import pytest
import torch
from torch import nn

from graphwidget.diagnosis.source.edits.text_edit import apply_to
from tests.support.told import findings_of

NET = """from torch.nn.utils import parametrize
class Unit(nn.Module):
    def forward(self, weight):
        {body}
net = nn.Linear(2, 2)
parametrize.register_parametrization(net, "weight", Unit())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ran = []
"""
STEP = """def step(one):
    loss = net(one).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    ran.append(loss.item())
"""
ONE_LINE, BY_NAME = "return weight / weight.norm()", "weight = weight / weight.norm()\n        return weight"
SWAP = """def epoch(data):
    with parametrize.cached():
        for one in data:
            step(one)
"""
MORE = """def epoch(data):
    with parametrize.cached():
        # what comes before
        size = float(len(data))
        for _ in range(2):
            for one in data:
                step(one)

            size = size  # once a round
        return net(data[0]).sum() / size
"""
IN_ANOTHER = """def passes(data):
    for one in data:
        step(one)
def epoch(data):
    with parametrize.cached():
        passes(data)
"""
NESTED = """import contextlib
def epoch(data):
    with parametrize.cached():
        with contextlib.nullcontext():
            for one in data:
                step(one)
"""
TWO_ITEMS = """import contextlib
def epoch(data):
    with parametrize.cached(), contextlib.nullcontext():
        for one in data:
            step(one)
"""
RUN = "for _ in range(2):\n    epoch(torch.ones(3, 2, 2))\n"


@pytest.mark.parametrize("body", [ONE_LINE, BY_NAME], ids=["without a name", "in a variable that ends"])
@pytest.mark.parametrize("epoch", [SWAP, MORE], ids=["alone", "among others"])
def test_the_block_goes_inside_the_loop_that_makes_the_passes(body, epoch):
    cells = {1: NET.format(body=body), 2: STEP, 3: epoch, 4: RUN}
    (found,) = findings_of(*cells.values())
    line = epoch.splitlines().index("    with parametrize.cached():") + 1
    assert f"No variable keeps it. `with parametrize.cached():` (In[3], line {line}) is around all passes" in found.text
    assert found.names[0] == "parametrize.cached()" and not found.carriers
    fix = found.fixes[0]
    assert fix.id == "recompute_in_loop" and fix.text.startswith("Put `with parametrize.cached():` (In[3]")
    names = {"torch": torch, "nn": nn}
    for text in apply_to(cells, fix.edits).values():
        exec(text, names)
    assert len(names["ran"]) == (6 if epoch is SWAP else 12)


def test_other_statements_stay_in_the_block_if_they_compute_something():
    (found,) = findings_of(NET.format(body=ONE_LINE), STEP, MORE, RUN)
    assert apply_to({3: MORE}, found.fixes[0].edits)[3] == (
        """def epoch(data):
    with parametrize.cached():
        # what comes before
        size = float(len(data))
    for _ in range(2):
        for one in data:
            with parametrize.cached():
                step(one)

        size = size  # once a round
    with parametrize.cached():
        return net(data[0]).sum() / size
"""
    )


@pytest.mark.parametrize("epoch", [IN_ANOTHER, NESTED, TWO_ITEMS], ids=["another function", "nested", "two items"])
def test_what_the_edit_cannot_keep_is_told_in_words(epoch):
    (found,) = findings_of(NET.format(body=ONE_LINE), STEP, epoch, RUN)
    fix = found.fixes[0]
    assert fix.text.startswith("Put `with ") and "it may keep" in fix.text
    assert not fix.edits and not fix.verified


HIDDEN = """w = nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([w], lr=0.1)
store = torch.futures.Future()
store.set_result(w.exp())
def step():
    loss = (store.value() * 2).exp().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
GENERATOR = """w = nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([w], lr=0.1)
def states():
    h = w.exp()
    while True:
        h = (h * w).exp()
        yield h.sum()
waiting = [states()]
def step():
    loss = next(iter(waiting[0]))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("program", [HIDDEN, GENERATOR], ids=["a block that has a name", "a generator's state"])
def test_a_block_that_is_no_keeper_is_not_blamed(program):
    head = (
        "with contextlib.closing(contextlib.ExitStack()) as stack" if program is HIDDEN else "with parametrize.cached()"
    )
    loop = "for _ in range(3):\n        step()"
    last = f"import contextlib\nfrom torch.nn.utils import parametrize\n{head}:\n    {loop}\n"
    (found,) = (one for one in findings_of(program, last) if one.kind == "second_backward")
    assert "around all passes" not in found.text
    assert not any(fix.text.startswith("Put `with") for fix in found.fixes)
