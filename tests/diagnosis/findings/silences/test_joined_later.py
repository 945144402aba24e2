"""Parameters that a line puts into a module behind its optimizer: torch's own code, an adapter, a loop, a callback."""

import pytest
from told import findings_of, with_joined

from graphwidget.diagnosis.source.edits.text_edit import apply

NET = """
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.nn.utils import parametrize, prune
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4)), nn.Linear(4, 1)
    def forward(self, x):
        return self.head(self.body(x))
class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(2, base.in_features))
        self.b = nn.Parameter(torch.randn(base.out_features, 2))
    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T
class Positive(nn.Module):
    def forward(self, w):
        return w.exp()
"""
LOOP = """for step in range(4):
    loss = net(torch.rand(5, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FIT = """def fit(flag):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if flag:
        for layer in net.body:
            if isinstance(layer, nn.Linear):
                weight_norm(layer)
"""
FIT += "".join(f"    {line}\n" for line in LOOP.splitlines())


@pytest.mark.parametrize("flags", ["True,", "False, True, True, False"])
def test_the_line_that_replaced_them_in_a_loop_over_modules(flags):
    calls = f"for flag in ({flags}):\n    fit(flag)"
    (found,) = with_joined(NET, FIT, calls)
    assert "`weight_norm(layer)` (In[2], line 7) replaced what was there by them" in found.text
    assert "when `opt = torch.optim.SGD(net.parameters(), lr=0.1)` (In[2], line 3) ran" in found.text
    names = [f"net.body[{at}].parametrizations['weight'].original{part}" for at in (0, 2) for part in (0, 1)]
    assert list(found.names) == names and found.made_at.line == 7
    mended = apply(FIT, found.fixes[0].edits)
    assert mended.index("weight_norm") < mended.index("opt = ") < mended.index("for step")
    assert not with_joined(NET, mended, calls)


def test_nothing_false_is_said_where_no_line_was_measured():
    (found,) = findings_of(NET, FIT, "fit(True)")
    assert "replaced" not in found.text and "`net = Net()`" not in found.text
    assert "took the parameters that `net` had then. It goes on with old ones" in found.text
    assert "after the module is complete" in found.fixes[0].text and "param_groups" not in str(found)


def test_the_line_that_made_the_module_did_not_replace_what_a_function_had_taken():
    helper = "def make(net):\n    return torch.optim.SGD(net.parameters(), 0.1)\n"
    made = f"{helper}net = Net()\nopt = make(net)\nweight_norm(net.head)\n"
    (found,) = findings_of(NET, made, LOOP)
    assert "replaced" not in found.text and "(In[2], line 2) took the parameters" in found.text
    (found,) = with_joined(NET, made, LOOP)
    assert apply(made, found.fixes[0].edits).endswith("weight_norm(net.head)\nopt = make(net)\n")


def test_a_callback_replaces_what_an_optimizer_of_unknown_make_holds():
    loop = """OPTIMIZERS = {"sgd": lambda p, lr: torch.optim.SGD(p, lr)}
class Loop:
    def __init__(self, model, name):
        self.model, self.start = model, lambda loop: weight_norm(loop.model.head)
        self.kept = model
        self.optimizer = OPTIMIZERS[name](model.parameters(), lr=0.1)
    def fit(self):
        self.start(self)
        for _ in range(4):
            self.optimizer.zero_grad()
            self.model(torch.rand(5, 3)).pow(2).mean().backward()
            self.optimizer.step()
"""
    call = "for _ in range(2):\n    Loop(Net(), 'sgd').fit()"
    (found,) = findings_of(NET, loop, call)
    assert "head.parametrizations['weight'].original0" in found.headline and "replaced" not in found.text
    (found,) = with_joined(NET, loop, call)
    assert "(In[2], line 4) replaced what was there" in found.text and "(In[2], line 6) ran" in found.text
    mended = apply(loop, found.fixes[0].edits)
    assert "        self.start(self)\n        known = " in mended and "in self.kept.parameters()" in mended
    assert not with_joined(NET, mended, call)


@pytest.mark.parametrize(
    "line, line_of_it",
    [
        ("torch.nn.utils.weight_norm(net.head)", "torch.nn.utils.weight_norm(net.head)"),
        ("net.head = Adapter(net.head)", "net.head = Adapter(net.head)"),
        ("setattr(net, 'head', nn.Linear(4, 2))", "setattr(net, 'head', nn.Linear(4, 2))"),
        ("net.head.weight = nn.Parameter(net.head.weight.float() * 2)", "net.head.weight = nn.Parameter(net"),
    ],
)
@pytest.mark.parametrize("between", ["", "plan = torch.optim.lr_scheduler.StepLR(opt, 3)\n"])
def test_a_statement_behind_the_optimizer(line, line_of_it, between):
    made = f"net = Net()\nopt = torch.optim.Adam(net.parameters())\n{between}{line}\n"
    (found,) = with_joined(NET, made, LOOP)
    assert f"`{line_of_it}" in found.text and found.made_at.line == made.splitlines().index(line) + 1
    mended = apply(made, found.fixes[0].edits)
    assert mended.index(line) < mended.index("opt = ") and not with_joined(NET, mended, LOOP)


def test_several_lines_of_a_function_are_one_finding():
    reset = """def reset(net):
    for one in net.modules():
        if isinstance(one, nn.Linear):
            one.weight = nn.Parameter(torch.empty_like(one.weight).normal_())
            one.bias = nn.Parameter(torch.zeros_like(one.bias))
"""
    made = "net = Net()\nopt = torch.optim.Adam(net.parameters())\nreset(net)\n"
    (found,) = with_joined(NET, reset, made, LOOP)
    assert "(In[2], line 4)" in found.text and "(In[2], line 5)" in found.text and len(found.names) == 6
    assert apply(made, found.fixes[0].edits).splitlines()[1] == "reset(net)"


def test_what_is_replaced_in_the_middle_of_training_is_given_to_the_optimizer_there():
    loop = LOOP.replace("range(4):\n", "range(9):\n    if step == 3:\n        net.head = nn.Linear(4, 2)\n")
    made = "net = Net()\nopt = torch.optim.Adam(net.parameters())\n"
    (found,) = with_joined(NET, made + loop)
    mended = apply(made + loop, found.fixes[0].edits)
    assert "nn.Linear(4, 2)\n        known = " in mended and not with_joined(NET, mended)


@pytest.mark.parametrize(
    "program",
    [
        "weight_norm(net.head)\nopt = torch.optim.Adam(net.parameters())\n",
        "opt = torch.optim.Adam(net.parameters())\nweight_norm(net.head)\nopt = torch.optim.Adam(net.parameters())\n",
        "opt = torch.optim.Adam(net.parameters())\nnet.head = Adapter(net.head)\n"
        "opt.add_param_group({'params': [net.head.a, net.head.b]})\n",
        "opt = torch.optim.Adam(net.head.parameters())\nweight_norm(net.body[0])\n",
        "opt = torch.optim.Adam(net.parameters())\nspectral_norm(net.head)\nprune.random_unstructured(net.body[0], "
        "'weight', 0.5)\ntorch.nn.utils.spectral_norm(net.body[2])\n",
        "opt = torch.optim.Adam(net.parameters())\nparametrize.register_parametrization(net.head, 'weight', Positive())\n",
        "opt = torch.optim.Adam(net.parameters())\nnet.head = nn.Sequential(net.head)\nnet.head.judge = nn.Linear(4, 2)\n"
        "net.head.judge.eval()\n",
        "opt = torch.optim.Adam(net.parameters())\nold = torch.optim.Adam(Net().parameters())\nnet.probe = nn.Linear(2, 2)\n",
    ],
    ids=[
        "before",
        "made again",
        "a group",
        "others are trained",
        "the same parameter",
        "parametrized",
        "at rest",
        "unused",
    ],
)
def test_correct_programs_are_left_alone(program):
    assert not [one for one in with_joined(NET, f"net = Net()\n{program}", LOOP) if one.severity == "warning"]


def test_an_optimizer_of_one_choice_among_modules_may_be_meant():
    fit = FIT.replace("    opt = ", "    given = net.head.parameters() if flag else net.parameters()\n    opt = ")
    fit = fit.replace("net.parameters(), lr", "given, lr").replace("weight_norm(layer)", "pass")
    call = "kept = []\nfor flag in (False, True):\n    fit(flag)"
    assert not [one for one in findings_of(NET, fit, call) if one.severity == "warning"]
