"""An input that was not used: the line ahead of it that cuts, and what to do where an optimizer holds it."""

from dataclasses import replace

import pytest
from told import findings_of, record_of

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Lineage, MeasuredCut, TextLine

DATA = (
    "x, t = torch.ones(6, 4), torch.full((6, 3), 1 / 3, requires_grad=True)\nnet = nn.Linear(4, 3)\n"
    "params = [*net.parameters(), t]"
)
OPTIMIZER = "opt = torch.optim.SGD(params, lr=0.1)"
ASKED = "loss = {loss}\ngrads = torch.autograd.grad(loss, params)\nfor p, g in zip(params, grads):\n    p.grad = g"


def test_a_function_that_takes_the_argmax_is_the_cause_and_needs_no_such_line() -> None:
    function = "def error(out, label):\n    label = label.argmax(1)\n    return nn.functional.cross_entropy(out, label)"
    (found,) = findings_of(DATA, OPTIMIZER, function, ASKED.format(loss="error(net(x), t)"))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (3, 2)
    assert "`argmax` has no derivative" in found.text
    (fix,) = found.fixes
    assert fix.id == "find_the_cut" and fix.edit[0] == "- label = label.argmax(1)"


def test_a_value_is_followed_into_the_module_that_computes_the_loss() -> None:
    module = (
        "class Soft(nn.Module):\n    def forward(self, out, want):\n        fixed = want.detach()\n"
        "        return (out - fixed).pow(2).mean()\nsoft = Soft()"
    )
    (found,) = findings_of(DATA, OPTIMIZER, module, ASKED.format(loss="soft(net(x), t)"))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (3, 3)
    assert not any(fix.id == "allow_unused" for fix in found.fixes)


def test_what_an_optimizer_holds_is_not_to_be_allowed_as_unused() -> None:
    (found,) = findings_of(DATA, OPTIMIZER, ASKED.format(loss="net(x).pow(2).mean()"))
    assert [fix.id for fix in found.fixes] == ["use_input"] and "never be trained" in found.fixes[0].text


def test_what_no_optimizer_holds_may_be_unused() -> None:
    (found,) = findings_of(DATA, ASKED.format(loss="net(x).pow(2).mean()"))
    assert found.fixes[0].id == "allow_unused" and found.fixes[0].edits


HELPER = "def grad(u, x):\n    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]"
POINTS = "x, t = (torch.rand(5, 1, requires_grad=True) for _ in range(2))"


def test_a_gradient_of_what_is_linear_does_not_depend_on_the_input() -> None:
    net = "net = nn.Sequential(nn.Linear(1, 4), nn.Identity(), nn.Linear(4, 1))"
    (found,) = findings_of(HELPER, POINTS, net, "u_x = grad(net(x), x)\nu_xx = grad(u_x, x)")
    assert "is linear in `x`" in found.text and "`addmm` only" in found.text and "ones_like" not in found.text
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (4, 1)
    (fix,) = found.fixes
    assert fix.id == "use_input" and not fix.edits and "nonlinear activation" in fix.text


def test_a_gradient_by_one_input_does_not_depend_on_another_that_is_added() -> None:
    (found,) = findings_of(HELPER, POINTS, "u_x = grad(x**3 + t**2, x).sum()\nu_xt = grad(u_x, t)")
    assert "`t` is only added" in found.text and "linear in" not in found.text


def test_a_cut_in_what_is_differentiated_is_still_the_cause() -> None:
    w = "w = torch.ones(1, requires_grad=True)"
    (found,) = findings_of(HELPER, POINTS, w, "u_x = grad(w * x * x.detach(), x)\nu_xx = grad(u_x, x)")
    assert "`detach` cuts the graph" in found.text


CACHING = """class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.adj = None
    def forward(self, w):
        if self.adj is None:
            self.adj = w / w.sum()
        return self.adj
norm, w = Norm(), torch.rand(4, requires_grad=True)"""
ATTACK = """for step in range(3):
    {first}loss = norm(w).pow(2).sum()
    g, = torch.autograd.grad(loss, w)
    with torch.no_grad():
        w = (w + g).clamp(0, 1)
    w.requires_grad_()"""


def test_what_is_kept_from_the_pass_before_cannot_depend_on_a_new_input() -> None:
    (found,) = findings_of(CACHING, ATTACK.format(first=""))
    assert "`norm.adj`" in found.text and "before this `w` existed" in found.text
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (1, 7)
    (fix,) = found.fixes
    assert fix.id == "recompute_in_loop" and fix.edit[0] == "+ norm.adj = None"
    assert findings_of(CACHING, ATTACK.format(first="norm.adj = None; ")) == ()


def test_an_element_that_is_kept_is_named_with_the_line_that_stores_it() -> None:
    cache = "cache, w = {}, torch.rand(4, requires_grad=True)"
    filled = "if 'n' not in cache:\n        cache['n'] = w / w.sum()\n    "
    (found,) = findings_of(cache, ATTACK.format(first=filled).replace("norm(w)", "cache['n']"))
    assert "`cache['n']`" in found.text and found.made_at is not None and found.made_at.line == 3
    assert not any(fix.edits for fix in found.fixes)


WORDS = (
    "class Reader(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.table = nn.Embedding(9, 3)\n"
    "    def forward(self, ids, scale):\n        found = self.table(ids.long())\n        return found.sum((1, 2)) * scale\n"
    "reader = Reader()\ngiven = [torch.ones(2, 4, requires_grad=True), torch.ones(2, requires_grad=True)]\n"
    "def saliency(run, *parts):\n    return torch.autograd.grad(run(*parts).sum(), parts)"
)
ASKS = "print(*saliency(reader, *given))"


def test_what_only_chooses_rows_of_a_table_was_used_and_has_no_derivative() -> None:
    record = record_of(WORDS, ASKS)
    chose = MeasuredCut((TextLine(1, None, 6), TextLine(1, None, 11)), "long", True, chosen=True, asked=(0,))
    lineage = Lineage(record.calls[-1].n, cuts=(chose,))
    (found,) = diagnose(replace(record, lineage=lineage))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 6)
    assert "uses what comes from it, and whole numbers have no derivative." in found.text
    assert [fix.id for fix in found.fixes] == ["find_the_cut"] and "of what is chosen" in found.fixes[0].text


def test_another_input_that_was_cut_off_is_not_the_cause() -> None:
    record = record_of(WORDS, ASKS)
    cut = MeasuredCut((TextLine(1, None, 7),), "detach", True, used=True, asked=(1,))
    lineage = Lineage(record.calls[-1].n, cuts=(cut,))
    assert diagnose(replace(record, lineage=lineage)) == diagnose(record)


# ------------------------------------------------------------------ parts, and arguments that are not read

POINTS_XT = "X = torch.rand(6, 2, requires_grad=True)\nnet = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))"


@pytest.mark.parametrize(
    ("taking", "behind"),
    [("X[:, 1:2]", "[:, 1:2]"), ("X[:, 1].unsqueeze(-1)", "[:, 1].unsqueeze(-1)"), ("X.select(1, 1)", ".select(1, 1)")],
)
def test_a_part_of_what_the_root_was_computed_from(taking: str, behind: str) -> None:
    asking = f"u = net(X)\nt = {taking}\nu_t = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]"
    (found,) = findings_of(POINTS_XT, asking)
    assert "takes `t` out of `X`" in found.text and found.cause is not None and found.cause.line == 2
    fixed = text_edit.apply(asking, found.fixes[0].edits)
    assert f"torch.autograd.grad(u, X, torch.ones_like(u), create_graph=True)[0]{behind}" in fixed
    assert not findings_of(POINTS_XT, fixed)


def test_what_is_computed_from_the_same_and_is_no_part_is_not_told_as_one() -> None:
    (found,) = findings_of(POINTS_XT, "u = net(X)\nt = X.sum(1)\ntorch.autograd.grad(u.sum(), t)")
    assert "out of" not in found.text and not found.fixes[0].edits


NOISE = "net = nn.Linear(3, 2)\nx = torch.ones(4, 3)\nnoise = torch.zeros(4, 3, requires_grad=True)"


@pytest.mark.parametrize(
    ("function", "words", "line"),
    [
        ("def run(embed, scale=1.0):\n    return net(x) * scale", "`run` (In[2], line 1) is given it as `embed`", 1),
        ("def run(embed):\n    embed = x + 1\n    return net(embed)", "`embed = x + 1` (In[2], line 2) replaces", 2),
        (
            "def run(embed):\n    return inner(embed * 2)\ndef inner(a):\n    return net(x)",
            "`inner` (In[2], line 3)",
            3,
        ),
        (
            "def run(embed):\n    for new, row in zip(embed, x):\n        row = new\n    return net(x)",
            "`row = new` (In[2], line 3) only gives a variable another value",
            3,
        ),
    ],
)
def test_a_function_that_does_not_read_what_it_is_given(function: str, words: str, line: int) -> None:
    (found,) = findings_of(NOISE, function, "loss = run(x + noise).sum()\ntorch.autograd.grad(loss, noise)")
    assert words in found.text and found.cause is not None and found.cause.line == line


def test_a_function_that_reads_what_it_is_given_is_not_named() -> None:
    function = "def run(embed):\n    if embed.sum() > 1:\n        return net(embed)\n    return net(x)"
    (found,) = findings_of(NOISE, function, "loss = run(noise).sum()\ntorch.autograd.grad(loss, noise)")
    assert "is given it" not in found.text


def test_a_line_behind_the_call_in_its_function_has_not_run() -> None:
    function = """def fit(w):
    for _ in range(2):
        loss = net(x).sum()
        torch.autograd.grad(loss, [w])
    return w.exp().item()"""
    (found,) = findings_of(NOISE, function, "fit(noise.detach().requires_grad_())")
    assert "item" not in found.text
