"""`backward` on what is no tensor: what it is instead, which line made it so, and what to write."""

import pytest
from told import findings_of

NET = "net = nn.Linear(3, 1)\nx, y = torch.randn(4, 3), torch.randn(4, 1)\n"


def only(*cells: str):
    (found,) = findings_of(NET, *cells)
    return found


def shown(found, number: int = 0) -> list[str]:
    return [edit.new for edit in found.fixes[number].edits]


@pytest.mark.parametrize(
    ("cell", "line", "new"),
    [
        ("total = 0\nfor _ in range(2):\n    total += net(x).mean().item()\n(total / 2).backward()", 3, [""]),
        ("total = 0\nfor _ in range(2):\n    total += float(net(x).mean())\ntotal.backward()", 3, ["net(x).mean()"]),
        ("import numpy as np\nloss = np.mean(net(x).detach().numpy())\nloss.backward()", 2, []),
    ],
)
def test_a_number_is_told_with_the_line_that_took_it_out_of_a_tensor(cell, line, new):
    found = only(cell)
    assert "no tensor" in found.headline
    assert (found.made_at.cell, found.made_at.line) == (2, line) and shown(found) == new


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("losses = []\ntotal = sum(losses)\ntotal.backward()", 2),
        ("total = 0\nfor use in [False, False]:\n    if use:\n        total += net(x).mean()\ntotal.backward()", 1),
        (
            "def fit(parts):\n    s = 0.0\n    for p in parts:\n        s = s + p\n    return s\nv = fit([])\nv.backward()",
            2,
        ),
    ],
)
def test_a_sum_of_nothing_is_told_with_the_line_that_begins_it(cell, line):
    found = only(cell)
    assert "was added up" in found.headline and (found.made_at.cell, found.made_at.line) == (2, line)
    assert found.fixes[0].id == "skip_the_call" and found.fixes[0].choice
    assert shown(found)[0].startswith("if isinstance(")


def test_a_sum_of_numbers_is_not_said_to_be_empty():
    found = only("total = 0\nfor n in [1, 2]:\n    total += int(n)\ntotal.backward()")
    assert "nothing was added" not in found.headline + found.text and "no tensor was added up" in found.headline


@pytest.mark.parametrize(
    ("body", "line", "new"),
    [
        ("    loss = (net(x) - y).square().mean()\n    print(loss.item())", 3, ["    return loss"]),
        ("    error = (net(x) - y).square().mean()\n    print(error.item())", 3, []),
        ("    loss = net(x).mean()\n    if loss > 1e9:\n        return loss\n    print(1)", 5, []),
    ],
)
def test_a_function_that_returns_nothing_is_told_with_its_end(body, line, new):
    found = only(f"def compute(x):\n{body}\nloss = compute(x)\nloss.backward()")
    assert found.headline.startswith("`compute` returns None")
    assert found.made_at.line == line and [one.strip("\n") for one in shown(found)] == new


def test_what_is_none_without_a_known_reason_gets_words():
    found = only("loss = {}.get('loss')\nloss.backward()")
    assert found.headline == "`loss` is None, and no tensor." and found.fixes[0].edits == ()


@pytest.mark.parametrize(
    ("made", "new"),
    [
        ("out = {'loss': net(x).mean(), 'kl': x.mean()}", "out['loss']"),
        ("out = {'a': net(x).mean(), 'b': net(x).sum()}", "sum(out.values())"),
        ("def f(x):\n    loss = net(x).mean()\n    return net(x), loss\nout = f(x)", "out[1]"),
        ("out = [net(x).mean(), net(x).sum()]", "sum(out)"),
        ("class Out:\n    def __init__(self):\n        self.loss = net(x).mean()\nout = Out()", "out.loss"),
    ],
)
def test_of_several_things_the_loss_is_a_choice(made, new):
    found = only(f"{made}\nout.backward()")
    assert "and no tensor" in found.headline and found.fixes[0].choice and shown(found) == [new]


def test_an_object_of_an_unknown_class_gets_words():
    found = only("import types\nout = types.SimpleNamespace(a=1)\nout.backward()")
    assert found.headline == "`out` is a SimpleNamespace, and no tensor." and found.fixes[0].edits == ()


def test_a_method_that_was_not_called_is_called():
    found = only("loss = net(x).mean\nloss.backward()")
    assert "not called" in found.headline and shown(found) == ["()"]


@pytest.mark.parametrize(
    "made", ["loss = nn.CrossEntropyLoss(net(x), y)", "loss = nn.MSELoss(net(x), y, reduction='sum')"]
)
def test_a_criterion_is_made_and_then_applied(made):
    found = only(f"{made}\nloss.backward()")
    head, inside = made.removeprefix("loss = ").split("(", 1)
    setting = "reduction='sum'" * ("reduction" in made)
    assert shown(found) == [f"{head}({setting})(net(x), y)"] and inside


def test_a_number_needs_no_item():
    found = only("total = 0.0\ntotal += net(x).mean().item()\nprint(total.item())")
    assert "has no graph to leave" in found.headline and shown(found) == ["total"]


@pytest.mark.parametrize(
    "cell",
    [
        "class Own:\n    pass\nOwn().other",  # not what is asked of tensors
        "[1].item()",  # of a list
        "bool(torch.randn(3))",  # no loss
    ],
)
def test_other_errors_are_none_of_these(cell):
    assert not any("no tensor" in one.headline or "module" in one.headline for one in findings_of(NET, cell))


def test_a_backward_of_an_optimizer_is_that_of_the_loss():
    found = only("opt = torch.optim.SGD(net.parameters(), lr=0.1)\nloss = net(x).mean()\nopt.backward(loss)")
    assert found.headline == "`opt` is a SGD, and has no `backward`." and shown(found) == ["loss.backward()"]


def test_an_object_that_is_no_criterion_is_not_said_to_be_one():
    found = only("opt = torch.optim.SGD(net.parameters(), 0.1)\nopt.backward()")
    assert "module" not in found.headline + found.text


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("torch.optim.SGD(net.parameters, lr=0.1)", "()"),
        ("torch.optim.Adam(net)", ".parameters()"),
        ("torch.autograd.grad(net(x).sum(), net.parameters)", "()"),
    ],
)
def test_parameters_are_listed(line, new):
    found = only(f"made = {line}")
    assert "listed by" in found.headline and shown(found) == [new]


TERMS = "class Terms:\n    def __init__(self):\n        self.recon, self.kl_loss = net(x).mean(), net(x).sum()\n"


def test_one_of_several_terms_is_not_taken_for_the_loss():
    (fix,) = only(f"{TERMS}out = Terms()\nout.backward()").fixes
    assert fix.edits == () and "`recon` and `kl_loss`" in fix.text
    found = only("def f(x):\n    kl_loss = net(x).sum()\n    return net(x).mean(), kl_loss\nout = f(x)\nout.backward()")
    assert [shown(found, i) for i in range(len(found.fixes))] == [["sum(out)"], ["out[1]"]]


def test_what_a_list_returns_when_it_is_added_to_is_none():
    found = only("losses = []\nloss = losses.append(net(x).mean())\nloss.backward()")
    assert "changes a container in place" in found.text
