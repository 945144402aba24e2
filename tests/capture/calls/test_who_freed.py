"""The call that freed a node is known in loops of every length and kind, at every moment."""

from __future__ import annotations

from array import array

import pytest
from cells import ALL_IN_FULL, NO_TIME, Notebook
from read_wire import decode

from graphwidget.capture.graph.freed import Freed
from graphwidget.model import SlotState, Snapshot
from graphwidget.render.text import picture
from graphwidget.render.wire import encode

START = """
from torch import nn
net, other = nn.Linear(3, 1), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.01)
x, y = torch.randn(8, 3), torch.randn(8, 1)
kept = []
def loss_of(model):
    return ((model(x) - y) ** 2).mean()
def step(model):
    loss = loss_of(model)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss
class Trainer:
    def __init__(self, model):
        self.model, self.loss = model, None
    def fit(self, n):
        for i in range(n):
            self.loss = loss_of(self.model)
            self.loss.backward()
"""

# Each program runs n iterations.
LOOPS = {
    "plain": "for it in range(N):\n    loss = loss_of(net)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()",
    "while": "it = 0\nwhile it < N:\n    loss = loss_of(net); loss.backward()\n    it += 1",
    "one line": "for it in range(N): loss = loss_of(net); loss.backward()",
    "in a function": "for it in range(N):\n    loss = step(net)",
    "in a method": "trainer = Trainer(net)\ntrainer.fit(N)",
    "comprehension": "losses = [step(net) for it in range(N)]",
    "two losses": "for it in range(N):\n    a = loss_of(net)\n    b = loss_of(other)\n    a.backward()\n    b.backward()",
    "two losses, the later first": (
        "for it in range(N):\n    a = loss_of(net)\n    b = loss_of(other)\n    b.backward()\n    a.backward()"
    ),
    "retained in between": (
        "for it in range(N):\n    h = net(x)\n    a, b = h.pow(2).mean(), h.exp().mean()\n"
        "    a.backward(retain_graph=True)\n    b.backward()"
    ),
    "retained at times": (
        "for it in range(N):\n    loss = loss_of(net)\n    loss.backward(retain_graph=it % 5 == 1)\n"
        "    if it % 5 == 1: loss.backward()"
    ),
    "accumulation": (
        "for it in range(N):\n    loss = loss_of(other) / 4\n    loss.backward()\n"
        "    if it % 4 == 3:\n        opt.step()\n        opt.zero_grad()"
    ),
    "autograd.grad": "for it in range(N):\n    loss = loss_of(net)\n    g = torch.autograd.grad(loss, list(net.parameters()))",
    "grad, then backward": (
        "for it in range(N):\n    loss = loss_of(net)\n"
        "    (g,) = torch.autograd.grad(loss, net.weight, create_graph=True)\n    total = loss + g.pow(2).sum()\n"
        "    total.backward()"
    ),
    "shapes that change": (
        "for it in range(N):\n    h = x\n    for _ in range(it % 3):\n        h = (h * net.weight).tanh()\n"
        "    loss = net(h).pow(2).mean()\n    loss.backward()"
    ),
    "kept from one pass": (
        "for it in range(N):\n    loss = loss_of(net)\n    loss.backward()\n    if it == N // 2: kept.append(loss)"
    ),
    "all kept": "for it in range(N):\n    loss = loss_of(net)\n    loss.backward()\n    kept.append(loss)",
    "models in turns": "for it in range(N):\n    for model in (net, other):\n        loss = step(model)\n    kept.append(loss)",
    "adversaries": (
        "for it in range(N):\n    fake = other(x)\n    d = (net(x.exp()) + net(fake.detach() * x)).mean()\n"
        "    d.backward()\n    g = net(fake * x).pow(2).mean()\n    g.backward()"
    ),
    "generator": (
        "def batches():\n    for i in range(N):\n        yield x * (i + 1)\n"
        "for b in batches():\n    loss = net(b).pow(2).mean()\n    loss.backward()"
    ),
}


@pytest.fixture
def notebook():
    made = Notebook()
    yield made
    made.close()


def known(snapshot: Snapshot) -> list[tuple]:
    """Return the nodes in order of creation, with the states of their slots and the calls that freed them."""
    order = sorted(range(len(snapshot)), key=lambda i: snapshot.seq[i])
    return [
        (snapshot.name_of(i), [(SlotState(snapshot.slot_state[s]).word, snapshot.slot_freed_by[s]) for s in slots])
        for i in order
        if (slots := snapshot.slots_of(i))
    ]


def unknown(snapshot: Snapshot) -> int:
    """Return the number of freed slots whose freeing call is unknown."""
    pairs = zip(snapshot.slot_state, snapshot.slot_freed_by, strict=True)
    return sum(state == SlotState.FREED and n < 0 for state, n in pairs)


def run(name: str, passes: int, *, tight: bool) -> Notebook:
    """Return a notebook that has run a loop: `tight` as in a tight loop, else with every call read in full."""
    made = Notebook(calls=NO_TIME if tight else ALL_IN_FULL)
    made.run(START)
    made.run(f"N = {passes}\n{LOOPS[name]}")
    made.close()
    assert made.errors == []
    return made


@pytest.mark.parametrize("passes", [1, 2, 3, 4, 6, 10, 11, 12, 20, 90])
@pytest.mark.parametrize("name", LOOPS)
def test_who_freed_it_is_known_after_every_loop(name, passes):
    tight, full = run(name, passes, tight=True), run(name, passes, tight=False)
    assert unknown(full.tracker.snapshot()) == 0
    assert known(tight.tracker.snapshot()) == known(full.tracker.snapshot())
    assert not any(unknown(event.snapshot) for event in tight.tracker.events if event.snapshot)


@pytest.mark.parametrize("passes", [1, 4, 11, 12, 40])
def test_the_last_pass_is_known_by_the_last_call_live_in_the_past_and_in_text(notebook, passes):
    notebook.run(START)
    notebook.run(LOOPS["plain"].replace("N", str(passes)))
    tracker = notebook.tracker
    drawing = tracker.drawing()
    assert set(drawing.snapshot.slot_freed_by) == {passes - 1, -1}
    assert unknown(drawing.snapshot) == 0
    assert set(tracker.events[-1].snapshot.slot_freed_by) == {passes - 1, -1}
    assert set(decode(encode(drawing))["freedBy"].values()) == {passes - 1}
    text = picture(drawing)
    assert f"freed by call {passes} (In[2]:4, iteration {passes - 1})" in text
    assert "unknown call" not in text


def test_who_freed_the_graph_of_an_early_pass_is_still_known_after_many():
    notebook = Notebook(calls=NO_TIME)
    notebook.run("w = torch.ones(2, requires_grad=True)\nkept = {}")
    notebook.run(
        "for i in range(20_000):\n    loss = (w * w).sum()\n    loss.backward()\n    if i in (7, 9_000): kept[i] = loss"
    )
    snapshot = notebook.tracker.snapshot()
    by = {
        o.path: {snapshot.slot_freed_by[s] for s in snapshot.slots_of(snapshot.next(o.node)[0])}
        for o in snapshot.owners
    }
    assert (by["kept[7]"], by["kept[9000]"], by["loss"]) == ({7}, {9_000}, {19_999})
    notebook.close()


def test_a_hundred_thousand_calls_are_remembered_in_bounded_memory():
    freed, shape = Freed(limit=1000), array("q", [0, 2, 3])
    for n in range(5000):
        freed.add_whole(n, 10 * n + 6, 10 * n + 5, shape)
    assert [freed.of(-1, 10 * 4990 + at) for at in (1, 2, 3, 4, 5, 6)] == [None, 4990, 4990, None, 4990, None]
    assert freed.of(-1, 5) is None  # the oldest are forgotten
    assert len(freed._n) <= 1000


def test_numbers_that_two_threads_may_have_given_tell_nothing():
    below = 0
    freed = Freed(apart_below=lambda: below)
    freed.add_whole(3, 10, 9, array("q", [0, 1]))
    assert freed.of(-1, 8) == 3
    below = 9
    assert (freed.of(-1, 8), freed.of(-1, 9)) == (None, 3)
