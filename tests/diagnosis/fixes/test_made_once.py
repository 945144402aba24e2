"""What must not run again, and what is handed on to the next pass."""

import ast

import pytest

from graphwidget.diagnosis.fixes.rerun.made_once import starts_over
from graphwidget.diagnosis.fixes.rerun.rerun import Statement
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits.text_edit import apply
from graphwidget.model import CellRun
from tests.support.told import findings_of

START = "net, x = nn.Linear(3, 3), torch.ones(2, 3)\n"
TWO_PASSES = "for i in range(2):\n    (h * (i + 1)).exp().sum().backward()\n"


@pytest.mark.parametrize(
    "cell",
    [
        "w = torch.randn(3, requires_grad=True)\nh = w.clone().exp_()\n",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(3))\nnet, h = (made := Net()), made.w.exp()\n",
        "h = torch.tanh(nn.Linear(3, 3)(torch.ones(2, 3)))\n",
    ],
    ids=["a leaf that is written", "a module on the same line", "a module without a name"],
)
def test_what_makes_a_leaf_does_not_run_again(cell):
    (found,) = findings_of(cell, TWO_PASSES)
    assert "recompute_in_loop" not in {fix.id for fix in found.fixes if fix.edits}


@pytest.mark.parametrize(
    "cell",
    [
        "w = nn.Parameter(torch.ones(3))\nh = w.exp()\n",
        "net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())\nh = net(torch.ones(2, 3))\n",
    ],
    ids=["made of a parameter", "made by a module"],
)
def test_what_only_builds_a_graph_may_run_again(cell):
    (found,) = findings_of(cell, TWO_PASSES)
    (again,) = (fix for fix in found.fixes if fix.id == "recompute_in_loop")
    assert again.verified and again.edits


@pytest.mark.parametrize(
    "cell",
    [
        "def step(t):\n    t.backward()\nh = net(x).exp().sum()\nstep(h)\nstep(h)\n",
        "def step(t):\n    (t * 2).exp().sum().backward()\nh = net(x).exp()\nstep(h)\nstep(h)\n",
        "h = [net(x).exp().sum()]\nkept = h[0]\nkept.backward()\nkept.backward()\n",
    ],
    ids=["its loss", "a part of its loss", "another name"],
)
def test_what_a_call_was_given_is_not_made_again_inside_it(cell):
    (found,) = findings_of(START, cell)
    assert not any("start of `step`" in fix.text for fix in found.fixes)
    for fix in found.fixes:
        if fix.edits and fix.verified:
            assert not findings_of(START, apply(cell, fix.edits))


def test_a_state_that_the_loop_carries_on_does_not_start_over():
    (loop,) = ast.parse("for x in xs:\n    h = f(x, h)\n    item = queue.pop()\n    y = g(z)\n").body
    begun = [ast.parse(text).body[0] for text in ("h = zeros()", "queue = list(z)", "z = net(x)")]
    assert [starts_over([one], loop) for one in begun] == [True, True, False]


def test_a_statement_is_taken_from_the_line_that_it_shares():
    cell = "raw = make(); w = raw.exp()\n"
    second = Statement(CellRun(0, 1, cell), source.beginning_at(cell, 1)[1])
    assert second.lines == ["w = raw.exp()"]


def test_lines_that_hand_a_tensor_to_the_next_pass():
    cell = "for x in xs:\n    out = net(x)\n    f(out, prev).backward()\n    prev = out\n    best = prev\n"
    (loop,) = ast.parse(cell).body
    assert [(s.lineno, a, b) for s, a, b in source.hand_overs(loop, 3)] == []
    (loop,) = ast.parse(cell.replace("    best = prev\n", "")).body
    assert [(s.lineno, a, b) for s, a, b in source.hand_overs(loop, 3)] == [(4, "prev", "out")]


KEPT_WITH_A_RETURN = """
class Angles(nn.Module):
    def __init__(self):
        super().__init__()
        self.freqs, self.kept = nn.Parameter(torch.ones(3)), None
    def forward(self):
        if self.kept is not None:
            return self.kept
        found = torch.cos(self.freqs)
        self.kept = found
        return found
net = Angles()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
PASSES = """
for _ in range(3):
    loss = net().pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_what_a_function_returns_from_before_is_computed_in_each_pass():
    (found,) = findings_of(KEPT_WITH_A_RETURN, PASSES)
    (fix,) = found.fixes
    assert fix.verified and fix.edit == ("- if self.kept is not None:", "-     return self.kept")


CACHED = """
from torch.nn.utils import parametrize
class Unit(nn.Module):
    def forward(self, w):
        return w / w.norm()
net = nn.Linear(3, 3)
parametrize.register_parametrization(net, "weight", Unit())
def fit(data):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with parametrize.cached():
        for one in data:
            loss = net(one).pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
"""


def test_a_block_that_keeps_what_no_variable_has_is_named_and_moved_into_the_loop_of_a_function():
    (found,) = findings_of(CACHED, "fit(torch.ones(3, 2, 3))\n")
    assert "No variable keeps it. `with parametrize.cached():` (In[1], line 10) is around all passes" in found.text
    (fix,) = found.fixes
    assert fix.verified and fix.edit[2:] == ("+ for one in data:", "+     with parametrize.cached():")


def test_what_a_cell_names_was_built_where_it_got_its_name():
    net = "class Net(nn.Module):\n    def forward(self, x):\n        y = x.exp()\n        return y\nnet = Net()\n"
    (found,) = findings_of(
        "w = torch.ones(3, requires_grad=True)\n" + net, "y = net(w)\n", TWO_PASSES.replace("h", "y")
    )
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 1)


CACHE = """class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.kept, self.ready = nn.Linear(3, 3), {{}}, True
    def get(self, key, x):
        {head}
{body}        return self.kept[key]
bank = Bank()
opt = torch.optim.SGD(bank.parameters(), lr=0.1)
for _ in range(2):
    loss = bank.get("a", torch.ones(2, 3)).exp().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FILL = "            # only once\n            self.kept[key] = bank.net(x).tanh()\n"


@pytest.mark.parametrize(
    ("head", "body", "edited"),
    [
        ("if key not in self.kept:", FILL, "        # only once\n        self.kept[key] = bank.net(x).tanh()\n"),
        ("if key not in self.kept: self.kept[key] = bank.net(x).tanh()", "", "        self.kept[key] = bank.net(x)"),
        (
            "if self.ready and key not in self.kept:",
            FILL + "        else:\n            pass\n",
            f"        if self.ready:\n{FILL}        else:\n",
        ),
        (
            'if key not in self.kept:\n            note = """\n  made"""',
            FILL,
            f'        if True:\n            note = """\n  made"""\n{FILL}',
        ),
    ],
    ids=["a block", "on one line", "a part of the test", "a text over lines"],
)
def test_what_was_made_once_is_made_in_each_pass_without_the_test(head, body, edited):
    cell = CACHE.format(head=head, body=body)
    (found,) = findings_of(cell)
    first = found.fixes[0]
    assert first.verified and "drop the test `key not in self.kept`" in first.text
    text = apply(cell, first.edits)
    assert edited in text
    assert findings_of(text) == ()


LAZY = "w = torch.tensor([0.3, 0.6], requires_grad=True)\nx = torch.ones(2)\nd = torch.distributions.Bernoulli(probs=w)"
STEPS = "opt = torch.optim.SGD([w], lr=0.1)\n" + (
    "for _ in range(3):\n    opt.zero_grad()\n    loss = -d.log_prob(x).sum()\n    loss.backward()\n    opt.step()"
)


def test_an_object_that_keeps_what_its_first_use_computes_is_made_in_each_pass() -> None:
    """`log_prob` computes `d.logits` when it is first asked for: in the loop, in lines of torch."""
    (found,) = findings_of(f"{LAZY}\n{STEPS}")
    first = found.fixes[0]
    assert (first.id, first.verified) == ("recompute_in_loop", False)  # only a trial tells
    mended = apply(f"{LAZY}\n{STEPS}", first.edits)
    assert "    d = torch.distributions.Bernoulli(probs=w)\n    opt.zero" in mended and not findings_of(mended)


PEERS = """
class Trainer:
    def __init__(self, nets):
        self.nets = nets
        self.opts = [torch.optim.SGD(net.parameters(), 0.1) for net in nets]
    def train(self):
        for x in torch.ones(2, 3, 2):
            self.one_batch(x)
    def one_batch(self, x):
        outs = []
        for net in self.nets:
            net.train()
            outs.append(net(x))
        for i in range(2):
            loss = (outs[i] - outs[1 - i]).pow(2).mean()
            self.opts[i].zero_grad()
            loss.backward()
            self.opts[i].step()
trainer = Trainer([nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)) for _ in range(2)])
trainer.train()
"""


def test_the_loop_that_fills_a_list_runs_again_as_a_whole():
    """``net.train()`` in it is not the program's own `train`, which is running."""
    finding = next(one for one in findings_of(PEERS) if one.kind == "second_backward")
    fix = finding.fixes[0]
    assert fix.verified and [line.strip("+ ") for line in fix.edit if line.startswith("+")] == [
        "outs = []",
        "for net in self.nets:",
        "net.train()",
        "outs.append(net(x))",
    ]
