"""Which line cut the graph, read from the cells' text."""

from dataclasses import replace

import pytest
from records import NO_GRAD, place
from told import findings_of

from graphwidget.diagnosis.findings import no_grad as nograd
from graphwidget.diagnosis.no_graph.leaves import by_hand
from graphwidget.diagnosis.source import fitting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import root_name
from graphwidget.model import BackwardCall, CellRun, Record, Snapshot, TensorRef


def explained(*cells, modes=()):
    """`modes`: per cell whether grad mode was on before and after it; on, if not given."""
    before_after = dict(enumerate(modes))
    runs = {
        i: CellRun(
            i,
            i + 1,
            text,
            f"c{i + 1}",
            grad_before=before_after.get(i, "on on")[:2] == "on",
            grad_after=before_after.get(i, "on on")[-2:] == "on",
        )
        for i, text in enumerate(cells)
    }
    last = place(len(cells), 1, source="loss.backward()")
    root = (TensorRef(-1, 0, ("loss",), requires_grad=False),)
    call = BackwardCall(0, last, "backward", False, False, root, (), result="raised", error=NO_GRAD)
    record = Record(Snapshot(), (call,), (), runs)
    finding = nograd.explain(record, call)
    return replace(finding, fixes=tuple(fitting.with_display(record, fix) for fix in finding.fixes))


CASES = {
    "detach": ("y = net(x).detach()\nloss = y.sum()\n", "detach", (1, 1)),
    "item": ("loss = torch.as_tensor(net(x).item())\n", "no_grad_or_item", (1, 1)),
    "argmax": ("loss = net(x).argmax(1).float().mean()\n", "differentiable_op", (1, 1)),
    "with": ("with torch.no_grad():\n    y = net(x)\nloss = y.sum()\n", "remove_no_grad", (1, 1)),
    "decorator": ("@torch.inference_mode()\ndef f(x):\n    return net(x)\nloss = f(x)\n", "remove_no_grad", (1, 1)),
    "switch": ("torch.set_grad_enabled(False)\nloss = net(x)\n", "remove_no_grad", (1, 1)),
    "frozen": ("for p in net.parameters():\n    p.requires_grad = False\nloss = net(x)\n", "unfreeze", (1, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_line_that_cut_the_graph_is_named(case):
    text, fix, at = CASES[case]
    finding = explained(text, "loss.backward()\n")
    assert [f.id for f in finding.fixes] == [fix]
    assert finding.fixes[0].at == at
    assert finding.severity == "error" and finding.tensor == "loss"


def test_a_grad_mode_that_was_switched_on_again_is_not_blamed():
    text = "torch.set_grad_enabled(False)\ntorch.set_grad_enabled(True)\nloss = net(x)\n"
    assert [f.id for f in explained(text, "loss.backward()\n").fixes] == ["find_the_cut"]


EDITS = {
    "detach": ("y = net(x).detach().relu()\nloss = y.sum()\n", ["- y = net(x).detach().relu()", "+ y = net(x).relu()"]),
    "item": ("loss = net(x).mean().item()\n", ["- loss = net(x).mean().item()", "+ loss = net(x).mean()"]),
    "with": (
        "with torch.no_grad():\n    x = f()\n    y = net(x)\n\n    z = y\nloss = y.sum()\n",
        [
            *("- with torch.no_grad():", "-     x = f()", "-     y = net(x)", "- ", "-     z = y"),
            *("+ x = f()", "+ y = net(x)", "+ ", "+ z = y"),
        ],
    ),
    "with more": (
        "with torch.no_grad():\n    k = 1\n    y = net(x)\n    loss = y.sum()\n",
        ["-     y = net(x)", "-     loss = y.sum()", "+ y = net(x)", "+ loss = y.sum()"],
    ),
    "data": ("loss = net(x).data.mean()\n", ["- loss = net(x).data.mean()", "+ loss = net(x).mean()"]),
    "update": (
        "with torch.no_grad():\n    net = net - 0.1 * net.grad\nloss = net.sum()\n",
        ["- net = net - 0.1 * net.grad", "+ net -= 0.1 * net.grad"],
    ),
    "with alone": (
        "with torch.no_grad():\n    loss = net(x)\n",
        ["- with torch.no_grad():", "-     loss = net(x)", "+ loss = net(x)"],
    ),
    "one line": ("with torch.no_grad(): loss = net(x)\n", ["- with torch.no_grad(): loss = net(x)", "+ loss = net(x)"]),
    "two": (
        "with torch.no_grad(), open(p) as f:\n    loss = net(x)\n",
        ["- with torch.no_grad(), open(p) as f:", "+ with torch.enable_grad(), open(p) as f:"],
    ),
    "decorator": (
        "@torch.no_grad()\n@timed\ndef f(x):\n    return net(x)\nloss = f(x)\n",
        ["- @torch.no_grad()"],
    ),
    "switch": (
        "torch.set_grad_enabled(False)\nloss = net(x)\n",
        ["- torch.set_grad_enabled(False)"],
    ),
}


@pytest.mark.parametrize("case", EDITS)
def test_an_edit_gives_the_graph_back(case):
    text, edit = EDITS[case]
    (fix,) = explained(text, "loss.backward()\n").fixes
    assert fix.edit == tuple(edit) and not fix.verified
    (known,) = explained(
        "net = nn.Linear(2, 1)\n",
        text,
        "loss.backward()\n",
    ).fixes
    assert known.verified


def test_a_class_is_asked_what_its_objects_do_when_called():
    net = "class Net(nn.Module):\n    @torch.no_grad()\n    def forward(self, x):\n        return self.l(x)\nnet = Net()\n"
    (fix,) = explained(net, "loss = net(x).mean()\n", "loss.backward()\n").fixes
    assert (fix.id, fix.at) == ("remove_no_grad", (1, 2))


def test_a_comparison_is_blamed_last():
    finding = explained("net = nn.Linear(2, 1)\nloss = (net(x) > 0).float().mean()\n", "loss.backward()\n")
    assert finding.fixes[0].id == "differentiable_op" and "compares" in finding.text


def test_no_claim_is_made_where_something_requires_grad():
    finding = explained("net = nn.Linear(2, 1)\nloss = odd(net(x))\n", "loss.backward()\n")
    assert "unknown" in finding.text and "Nothing" not in finding.text


def test_where_something_is_frozen_nothing_is_sure():
    frozen = "net = nn.Linear(2, 1)\nnet.requires_grad_(False)\n"
    (fix,) = explained(frozen, "loss = net(x).detach()\n", "loss.backward()\n").fixes
    assert fix.edit and not fix.verified


def test_a_grad_mode_that_is_on_is_not_blamed():
    text = "with torch.set_grad_enabled(True):\n    loss = net(x)\n"
    assert [f.id for f in explained(text, "loss.backward()\n").fixes] == ["find_the_cut"]


OFF = "def evaluate():\n    torch.set_grad_enabled(False)\n    return net(x).mean()\n"
NET, LOSS = "net = nn.Linear(2, 1)\n", "loss = net(x).mean()\nloss.backward()\n"


def test_a_function_that_leaves_grad_mode_off_is_found():
    finding = explained(NET, OFF, "val = evaluate()\n", LOSS, modes=("on on", "on on", "on off", "off off"))
    assert finding.text.startswith("`torch.set_grad_enabled(False)` (In[2], line 2) is in force: `loss` was computed")
    assert finding.fixes[0].at == (2, 2) and finding.fixes[0].verified


def test_a_function_called_in_the_same_cell_is_found():
    finding = explained(NET, OFF, "val = evaluate()\n" + LOSS, modes=("on on", "on on", "on off"))
    assert finding.fixes[0].at == (2, 2)


def test_a_function_that_is_not_called_is_not_blamed():
    finding = explained(NET, OFF, LOSS)
    assert "unknown" in finding.text
    finding = explained(
        NET, OFF, "from helpers import off\noff()\n", LOSS, modes=("on on", "on on", "on off", "off off")
    )
    assert finding.text.startswith("Grad mode is off since In[3]: `loss` was computed without a graph.")


def test_where_no_line_is_known_grad_mode_is_switched_on_before_the_loss():
    finding = explained(NET, "off()\n", LOSS, modes=("on on", "on off", "off off"))
    (fix,) = finding.fixes
    assert fix.edit == ("+ torch.set_grad_enabled(True)", "  loss = net(x).mean()") and fix.verified
    assert explained(NET, LOSS, modes=("off off", "off off")).text.startswith("Grad mode is off from the first cell on")


@pytest.mark.parametrize("on", ["torch.set_grad_enabled(True)\n", "with torch.enable_grad():\n    z = 1\n"])
def test_grad_mode_that_may_have_been_on_for_the_loss_is_not_blamed(on):
    finding = explained(NET, "off()\n", on + LOSS, modes=("on on", "on off", "off on"))
    assert "Grad mode" not in finding.text


def test_what_cut_the_graph_as_well_does_not_matter_while_grad_mode_is_off():
    finding = explained(NET, "off()\n", "loss = net(x).detach().mean()\n", modes=("on on", "on off", "off off"))
    assert "Grad mode is off" in finding.text and not finding.fixes[0].verified


def test_a_loss_made_before_grad_mode_was_switched_on_again_is_still_without_graph():
    cells = (NET, "torch.set_grad_enabled(False)\n", "loss = net(x).mean()\n", "torch.set_grad_enabled(True)\n")
    finding = explained(*cells, "loss.backward()\n", modes=("on on", "on off", "off off", "off on"))
    assert finding.fixes[0].at == (2, 1)


ONCE = """class Square(torch.autograd.Function):
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g
g, = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
loss = g.sum()
"""


def of_a_gradient(text):
    """A loss made of a gradient that a call with `create_graph=True` returned."""
    runs = {0: CellRun(0, 1, text, "c1"), 1: CellRun(1, 2, "loss.backward()\n", "c2")}
    line = text.splitlines().index(next(one for one in text.splitlines() if "autograd.grad(" in one)) + 1
    given = BackwardCall(0, place(1, line, run=0), "autograd.grad", False, True, (), (), result="ok")
    root = (TensorRef(-1, 0, ("loss",), requires_grad=False),)
    call = BackwardCall(1, place(2, 1), "backward", False, False, root, (), result="raised", error=NO_GRAD)
    return nograd.explain(Record(Snapshot(), (given, call), (), runs), call)


def test_a_backward_that_is_once_differentiable_is_blamed_for_a_gradient_without_a_graph():
    finding = of_a_gradient(ONCE)
    assert finding.text.startswith("`Square.backward` is `@once_differentiable` (In[1], line 3)")
    (fix,) = finding.fixes
    assert fix.at == (1, 3) and not fix.verified
    assert text_edit.apply(ONCE, fix.edits) == ONCE.replace("    @once_differentiable\n", "")


def test_a_constant_gradient_is_not_said_to_lack_create_graph():
    finding = of_a_gradient("g, = torch.autograd.grad((2 * x).sum(), x, create_graph=True)\nloss = g.sum()\n")
    assert "It is constant" in finding.text and "create_graph=True" not in finding.fixes[0].text


FREEZE = "for p in net.parameters():\n    p.requires_grad = False\n"
CRIT = "loss = nn.functional.cross_entropy(net(x), labels)\nloss.backward()\n"

# Programs whose fault is that something does not require grad, next to a line that cuts nothing.
INNOCENT = {
    "labels": (NET + FREEZE + "labels = torch.tensor([0, 1])\nx = torch.randn(2, 2)\n", CRIT),
    "long": (NET + FREEZE, "labels = y.long()\n" + CRIT),
    "weights of the classes": (NET + FREEZE + "crit = nn.CrossEntropyLoss(weight=torch.tensor([1.0]))\n", "loss = crit(net(x), y)\n"),
    "number": (NET + FREEZE + "scale = torch.tensor(3.0).item()\n", "loss = (net(x) * scale).mean()\n"),
    "baseline": (
        NET + "with torch.no_grad():\n    base = net(x).mean()\n" + FREEZE,
        "loss = net(x).mean() - base\n",
    ),
    "teacher": (
        NET + "teacher = nn.Linear(2, 1)\n" + FREEZE + "x = torch.randn(2, 2)\n",
        "t = teacher(x).detach()\nloss = (net(x) - t).mean()\n",
    ),
    "parameter": ("w = nn.Parameter(torch.tensor([1.0]), requires_grad=False)\n", "loss = (w * 2).sum()\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", INNOCENT)
def test_a_line_that_read_nothing_with_a_graph_is_not_accused(case):
    finding = explained(*INNOCENT[case], "loss.backward()\n")
    assert "leaves the graph" not in finding.text and "ran under" not in finding.text
    assert "requires_grad" in finding.text and finding.fixes[0].id == "unfreeze"


def test_where_no_tensor_requires_grad_it_is_said():
    cells = ("w = torch.randn(3)\nX = torch.tensor([[1.0, 2.0, 3.0]])\n", "loss = (X @ w).sum()\nloss.backward()\n")
    assert explained(*cells).text.startswith("Nothing that `loss` was made from requires grad.")


def test_a_leaf_that_was_asked_too_late_is_named():
    finding = explained("x = torch.tensor([1.0])\nloss = (x**2).sum()\nx.requires_grad_()\n", "loss.backward()\n")
    assert "`x.requires_grad_()` (In[1], line 3) came too late" in finding.text
    assert [edit.new.strip() for edit in finding.fixes[0].edits] == ["x.requires_grad_()", ""]  # moved


def test_an_attribute_that_a_method_replaces_without_a_graph_is_found():
    text = (
        "class Model:\n    def __init__(self):\n        self.w = torch.randn(3, requires_grad=True)\n"
        "    def __call__(self, x):\n        return x @ self.w\n    def update(self):\n"
        "        with torch.no_grad():\n            self.w = self.w - self.w.grad\n"
        "y = torch.tensor([1.0])\nm = Model()\n"
    )
    finding = explained(text, "loss = (m(X) - y).mean()\nloss.backward()\n")
    assert finding.fixes[0].at == (1, 8) and "ran under" in finding.text


def test_what_reads_something_unknown_is_accused_with_a_condition_only():
    assert "if what it reads had one" in explained("loss = f(x).detach()\n", "loss.backward()\n").text
    assert "if what" not in explained(NET, "loss = net(x).detach()\n", "loss.backward()\n").text


def of_root(root, *cells):
    """What is said of `root.backward()`, the last cell."""
    runs = {i: CellRun(i, i + 1, text, f"c{i + 1}") for i, text in enumerate((*cells, f"{root}.backward()\n"))}
    last = place(len(runs), 1, source=f"{root}.backward()")
    call = BackwardCall(
        0,
        last,
        "backward",
        False,
        False,
        (TensorRef(-1, 0, (), requires_grad=False),),
        (),
        result="raised",
        error=NO_GRAD,
    )
    return nograd.explain(Record(Snapshot(), (call,), (), runs), call)


@pytest.mark.parametrize("root", ["y.pow(2).mean()", "F.mse_loss(y, t)", "scaler.scale(y)"])
def test_the_names_in_a_root_that_is_an_expression_are_followed(root):
    finding = of_root(root, NET, "y = net(x).detach()\n")
    assert finding.fixes[0].at == (2, 1) and finding.tensor == root


def test_a_gradient_itself_is_said_to_have_no_graph():
    assert "create_graph=True" in of_root("x.grad", "x = torch.ones(1, requires_grad=True)\n").text


def test_all_assignments_of_a_name_that_builds_on_itself_are_followed():
    finding = explained(
        NET, "h = net(x)\nh = h.data\nh = torch.relu(h)\nloss = h.sum()\nloss.backward()\n", "loss.backward()\n"
    )
    assert finding.fixes[0].at == (2, 2)


def test_of_two_cuts_on_a_line_none_alone_is_verified():
    (fix,) = explained(NET, "loss = f(net(x).detach().numpy())\n", "loss.backward()\n").fixes
    assert "numpy" in fix.text and not fix.verified


TRAIN = "def train():\n    loss = net(x).mean()\n    loss.backward()\n"


def test_what_a_function_assigns_was_computed_when_it_was_called():
    modes = ("on on", "on on", "on off", "off off")
    finding = explained(NET, OFF + TRAIN, "train()\nevaluate()\n", "train()\n", modes=modes)
    assert finding.fixes[0].at == (2, 2) and finding.fixes[0].verified


def test_a_method_that_forward_calls_is_looked_at():
    net = (
        "class Net(nn.Module):\n    @torch.no_grad()\n    def encode(self, x):\n        return self.l(x)\n"
        "    def forward(self, x):\n        return self.encode(x)\nnet = Net()\n"
    )
    assert explained(net, "loss = net(x).mean()\n", "loss.backward()\n").fixes[0].at == (1, 2)


def test_indices_are_found():
    finding = explained(NET, "_, pred = torch.max(net(x), 1)\nloss = pred.float().mean()\n", "loss.backward()\n")
    assert finding.fixes[0].at == (2, 1) and "indices" in finding.text


UNSURE = {
    "teacher": ("with torch.no_grad():\n    t = teacher(x)\n    s = net(x)\n    loss = (t - s).mean()\n", "ran under"),
    "condition": ("with torch.set_grad_enabled(phase == 'train'):\n    loss = net(x).mean()\n", "was false"),
    "two frozen": (
        "teacher.requires_grad_(False)\nnet.requires_grad_(False)\nloss = net(teacher(x)).mean()\n",
        "False",
    ),
    "some frozen": (
        "for n, p in net.named_parameters():\n    if n:\n        p.requires_grad = False\nloss = net(x).mean()\n",
        "requires_grad",
    ),
}


@pytest.mark.parametrize("case", UNSURE)
def test_a_fix_that_changes_more_than_the_one_thing_is_not_verified(case):
    text, words = UNSURE[case]
    finding = explained(NET + "teacher = nn.Linear(2, 2)\n", text, "loss.backward()\n")
    assert words in finding.text and not finding.fixes[0].verified


def test_a_frozen_module_that_was_measured_is_named():
    runs = {
        0: CellRun(0, 1, "net = load()\nlabels = torch.tensor([0])\n", "c1"),
        1: CellRun(1, 2, CRIT, "c2", modules={"net": False}),
    }
    root = (TensorRef(-1, 0, ("loss",), requires_grad=False),)
    call = BackwardCall(0, place(2, 2), "backward", False, False, root, (), result="raised", error=NO_GRAD)
    finding = nograd.explain(Record(Snapshot(), (call,), (), runs), call)
    assert finding.text.startswith("No parameter of `net` requires grad.")


ROOTS = {
    "self.opt.zero_grad(); loss.backward()": "loss",
    "if train: loss.backward()": "loss",
    "else: y.sum().backward()": "y.sum()",
    "a.backward(); b.backward()": "the root",
}


@pytest.mark.parametrize("line", ROOTS)
def test_the_root_is_what_backward_is_called_on(line):
    call = BackwardCall(0, place(1, 1, source=line), "backward", False, False, (), ())
    assert root_name(call) == ROOTS[line]


def test_a_cut_before_numbers_are_made_a_tensor_again_is_found():
    text = (
        "def ssim(a):\n    a = a.detach().numpy()\n    return torch.tensor(np.abs(a).mean())\nloss = 1 - ssim(net(x))\n"
    )
    assert explained(NET, text, "loss.backward()\n").fixes[0].at == (2, 2)


def test_what_is_cut_may_be_the_result_of_a_function_of_torch():
    finding = explained(NET, "loss = torch.relu(net(x)).argmax().float()\n", "loss.backward()\n")
    assert finding.fixes[0].at == (2, 1) and "argmax" in finding.text


def test_what_is_compared_twice_is_blamed_where_it_had_a_graph():
    cell = "net = nn.Linear(3, 2)\ny = torch.zeros(8)\npred = net(x) > 0\nloss = (pred[:, 0] == y).float().mean()\n"
    finding = explained(cell, "loss.backward()\n")
    assert finding.text.startswith("`pred = net(x) > 0` (In[1], line 3) leaves the graph: it compares.")


@pytest.mark.parametrize("read, trained", [("w.grad", True), ("new.grad", False), ("net.w.grad", False)])
def test_only_what_is_trained_by_hand_is_updated_in_place(read, trained):
    cell = f"print({read})\nw = w - 0.1 * m"
    assert bool(by_hand.updated_in_place(cell, source.parse(cell).body[1])) is trained


def test_a_gradient_that_a_helper_computes_is_built_with_a_graph_there() -> None:
    helper = "def slope(y, x):\n    return torch.autograd.grad(y, x, torch.ones_like(y))[0]"
    (found,) = findings_of(
        "net = nn.Linear(1, 1)\nx = torch.ones(3, 1, requires_grad=True)",
        helper,
        "d = slope(net(x) ** 2, x)\nslope(d, x)",
    )
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 2)
    assert found.fixes[0].id == "create_graph" and found.fixes[0].edits[0].new.strip(", ") == "create_graph=True"


def test_a_comparison_in_a_method_of_an_object_is_the_cut() -> None:
    seg = (
        "class Seg(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = nn.Linear(2, 1)\n"
        "    def mask(self, x):\n        p = self.net(x).sigmoid()\n        return (p > 0.5).float()"
    )
    (found,) = findings_of(seg, "seg = Seg()\nloss = seg.mask(torch.ones(3, 2)).mean()\nloss.backward()")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 7)
