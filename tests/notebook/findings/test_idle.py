"""Steps of optimizers that change nothing, and raise nothing."""

from __future__ import annotations

import pytest

NET = "from torch import nn\nnet = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"
LOOP = """for i in range(3):
    loss = net(torch.ones(4, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()"""


def told(findings):
    return [f for f in findings if f.headline.endswith(" changed nothing.")]


def untrained(findings):
    return [f for f in findings if "never trained" in f.headline]


def test_an_optimizer_of_a_module_that_was_made_again(run):
    """One finding: that no optimizer holds what backward reaches. It says why the step is idle."""
    findings = run(NET, "net = nn.Linear(2, 1)", LOOP)
    (found,) = untrained(findings)
    assert found.severity == "warning" and found.names == ("net.weight", "net.bias")
    assert "The optimizer has the parameters that `net` had before" in found.text
    assert not told(findings)


@pytest.mark.parametrize("passes", [2, 5, 20])
def test_a_module_that_is_made_again_after_it_was_trained(run, passes):
    """As when cells are run again: the optimizer has made steps with gradients, and goes on with what it had."""
    *net, opt = NET.splitlines()
    loop = LOOP.replace("range(3)", f"range({passes})")
    findings = run("\n".join(net), opt, loop, "\n".join(net), loop, ids="abcdbd")
    (found,) = untrained(findings)
    assert found.names == ("net.weight", "net.bias")
    assert found.fixes[0].text.startswith("Run `opt = torch.optim.SGD(net.parameters(), lr=0.1)` (In[3], line 1) again")


def test_it_is_over_once_the_optimizer_has_something_to_go_by(run):
    assert untrained(run(NET, "net = nn.Linear(2, 1)", LOOP))
    findings = run("opt = torch.optim.SGD(net.parameters(), lr=0.1)", LOOP, ids=("x", "d"))
    assert not untrained(findings) and not told(findings)


def test_gradients_that_are_cleared_before_the_step(run):
    (found,) = told(
        run(NET, LOOP.replace("    opt.zero_grad()\n", "").replace("    opt.st", "    opt.zero_grad()\n    opt.st"))
    )
    assert "`opt.zero_grad()` (In[3], line 4) clears the gradients that the backward before it gave." in found.text
    assert found.fixes[0].id == "zero_grad_or_step_order" and found.fixes[0].at == (3, 4)


def test_parameters_that_took_no_part(run):
    two = "head = nn.Linear(1, 1)\nother = torch.optim.SGD(head.parameters(), lr=0.1)"
    (found,) = told(run(NET, two, LOOP + "\n    other.step()"))
    assert "It has `head.weight` and `head.bias`, which took no part in the backward before it" in found.text
    assert found.fixes == ()


def test_an_optimizer_of_other_parameters_in_a_function(run):
    body = LOOP.replace("\n", "\n    ")
    train = (
        f"def train():\n    net = nn.Linear(2, 1)\n    opt = torch.optim.Adam(nn.Linear(2, 1).parameters())\n    {body}"
    )
    (found,) = told(run("from torch import nn\n" + train, "train()"))
    assert "which `opt` does not have." in found.text
    assert found.fixes[0].text == "Make the optimizer of the parameters that the backward reaches."


@pytest.mark.parametrize(
    "cell",
    [
        LOOP,
        LOOP.replace("    opt.step()", "    if i == 1:\n        opt.step()\n        opt.zero_grad()"),
        "opt.step()\n" + LOOP,
        "opt.step()",
        LOOP.replace("lr=0.1", "lr=0"),
        LOOP + "\nopt.zero_grad()\nopt.step()",
    ],
    ids=["as usual", "now and then", "before the first", "alone", "rate 0", "once more behind the loop"],
)
def test_what_works_or_may_be_meant_so_is_not_reported(run, cell):
    assert not told(run(NET, cell))


def test_each_optimizer_has_one_finding(run):
    more = "heads = [nn.Linear(1, 1), nn.Linear(1, 1)]\nmore = torch.optim.SGD(heads[0].parameters(), lr=0.1)"
    last = "last = torch.optim.SGD(heads[1].parameters(), lr=0.1)"
    found = told(run(NET, more, last, LOOP + "\n    more.step()\n    last.step()"))
    assert sorted(f.headline for f in found) == ["`last.step()` changed nothing.", "`more.step()` changed nothing."]


def test_gradients_of_others_may_be_cleared(run):
    other = "net = nn.Linear(2, 1)\nother = torch.optim.SGD(net.parameters(), lr=0.1)"
    loop = LOOP.replace("    opt.zero_grad()\n", "").replace("    opt.st", "    other.zero_grad()\n    opt.st")
    (found,) = told(run(NET, other, loop))
    assert "clears" not in found.text and "which `opt` does not have." in found.text


def test_of_two_steps_on_a_line_none_is_named(run):
    nets = "more = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)\nother = more"
    found = told(run(NET, nets, LOOP + "\n    more.step(); other.step()"))
    assert {f.headline for f in found} == {"`more.step(); other.step()` changed nothing."}
    assert all("which the optimizer does not have." in f.text for f in found)


def test_gradients_that_were_taken_away_by_hand_are_not_said_to_be_of_others(run):
    both = "head = nn.Linear(1, 1)\nother = torch.optim.SGD(head.parameters(), lr=0.1)"
    loop = """for i in range(3):
    head(net(torch.ones(4, 2))).sum().backward()
    for p in net.parameters():
        p.grad = None
    opt.step()
    other.step()"""
    assert not told(run(NET, both, loop))
    assert not told(run(f"{NET}\n{both}\n{loop}", ids="xy"))


OTHER = "more = nn.Linear(2, 1)\nmore(torch.ones(4, 2)).sum().backward()"


def test_a_step_in_a_cell_of_its_own_is_reported_until_the_optimizer_has_worked(run):
    assert told(run(NET, OTHER, "opt.step()"))
    assert not told(run(LOOP, ids="xy"))


def test_a_backward_after_the_step_is_not_before_it(run):
    assert not told(run(NET, "opt.step()", OTHER))


def test_a_step_that_had_gradients_and_changed_nothing_is_not_reported(run):
    own = "net(torch.ones(4, 2)).sum().backward()\nopt = torch.optim.LBFGS(net.parameters(), tolerance_grad=1e9)"
    assert not told(run(NET, own, OTHER, "opt.step(lambda: torch.zeros(()))"))
