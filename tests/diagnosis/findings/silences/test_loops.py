"""Mistakes of a training loop that raise nothing, and correct loops of which nothing is said."""

import pytest
from told import findings_of, said

from graphwidget.diagnosis.source.edits.text_edit import apply

NET = (
    "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nx = torch.randn(8, 3)"
)
LOOP = "for _ in range(4):\n    loss = net(x).pow(2).mean()\n    loss.backward()\n    opt.step()\n"


# ------------------------------------------------------------------ gradients that add up


def test_gradients_that_nothing_clears_add_up() -> None:
    (found,) = findings_of(NET, LOOP, "other = net(x).sum()\nother.backward()")
    assert found.headline == "Gradients add up from step to step: nothing clears those of `opt`."
    assert found.severity == "warning" and found.cause is not None and found.cause.line == 3
    assert found.fixes[0].edit[-1].strip("+ ") == "opt.zero_grad()"


def test_gradients_that_are_clipped_add_up_too() -> None:
    clip = "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()"
    (found,) = findings_of(NET, LOOP.replace("    opt.step()", clip))
    assert found.headline.startswith("Gradients add up")


def test_the_optimizer_of_a_scaler_is_cleared() -> None:
    loop = LOOP.replace("opt.step()", "scaler.step(opt)\n    scaler.update()").replace("loss.b", "scaler.scale(loss).b")
    (found,) = findings_of(NET, "scaler = torch.amp.GradScaler('cpu', enabled=False)", loop)
    assert found.fixes[0].edits[0].new.strip() == "opt.zero_grad()"


EPOCHS = "for epoch in range(2):\n    opt.zero_grad()\n    for i in range(5):\n"
BATCH = "        loss = net(x).pow(2).mean()\n        loss.backward()\n        opt.step()\n"


def test_gradients_that_are_cleared_before_a_loop_add_up_in_it() -> None:
    (found,) = findings_of(NET, EPOCHS + BATCH)
    assert found.headline == "Gradients add up from step to step: nothing clears those of `opt` in between."
    assert "in 8 of 9 cases" in found.text and found.cause is not None and found.cause.source == "opt.zero_grad()"
    removed, added = found.fixes[0].edits
    assert (removed.start[0], added.start[0], added.new.strip()) == (2, 4, "opt.zero_grad()")


def test_gradients_that_are_cleared_by_another_function_now_and_then() -> None:
    start = "def begin():\n    net.zero_grad()"
    (found,) = findings_of(NET, start, EPOCHS.replace("opt.zero_grad()", "begin()") + BATCH)
    assert "in 8 of 9 cases" in found.text and "before the loop" not in found.text
    assert found.fixes[0].edits[0].new.strip() == "opt.zero_grad()"


CRITIC = (
    "def train():\n    opt.zero_grad()\n    for k in range({0}):\n        for half in range(2):\n"
    "            (net(torch.randn(4, 3)).pow(2).mean() / 2).backward()\n{1}        opt.step()\n"
    "for i in range(3):\n    train()\n"
)


@pytest.mark.parametrize("clip", ["", "        nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"])
@pytest.mark.parametrize("steps", [2, 3])
def test_one_clearing_for_a_few_steps_of_a_loop(steps: int, clip: str) -> None:
    (found,) = findings_of(NET, CRITIC.format(steps, clip))
    assert f"in {3 * steps - 3} of {3 * steps - 1} cases" in found.text and "before the loop" in found.text
    removed, added = found.fixes[0].edits
    assert (removed.start[0], added.start[0], added.new.strip()) == (2, 4, "opt.zero_grad()")


OTHER = (
    "wipe, part = getattr(torch, '_foreach_' + 'zero_'), nn.Linear(3, 1)\nmore = torch.optim.SGD(part.parameters(), lr=0.1)\n"
    "clear = lambda: wipe([p.grad for p in net.parameters()])\nnet(x).mean().backward()\nopt.step()\n"
)
CORRECT = {
    "cleared in place by other code where no call reaches it": (
        OTHER
        + "for i in range(6):\n    clear()\n    part(x).mean().backward()\n    more.step()\n    more.zero_grad()\n    opt.step()\n"
    ),
    "cleared in place behind a call of another part": (
        OTHER
        + "for i in range(6):\n    part(x).mean().backward()\n    more.step()\n    more.zero_grad()\n    clear()\n"
        "    net(x).mean().backward()\n    opt.step()\n"
    ),
    "accumulated in a loop of its own": (
        "for i in range(4):\n    opt.zero_grad()\n    for k in range(3):\n"
        "        (net(x).pow(2).mean() / 3).backward()\n    opt.step()\n"
    ),
    "two losses, each with a step": (
        "for i in range(4):\n    opt.zero_grad()\n    net(x).mean().backward()\n    opt.step()\n"
        "    net(x).pow(2).mean().backward()\n    opt.step()\n"
    ),
    "cleared before": LOOP.replace("    loss =", "    opt.zero_grad()\n    loss ="),
    "cleared with zeros": LOOP.replace("    loss =", "    opt.zero_grad(set_to_none=False)\n    loss ="),
    "cleared by hand": LOOP + "    for p in net.parameters():\n        p.grad = None\n",
    "cleared by hand with zeros": LOOP + "    for p in net.parameters():\n        p.grad.zero_()\n",
    "cleared by another name": (
        LOOP + "    given = [p.grad for p in net.parameters()]\n    for one in given:\n        one.zero_()\n"
    ),
    "cleared by the module": LOOP + "    net.zero_grad()\n",
    "accumulated over two passes": (
        "for i in range(8):\n    loss = net(x).pow(2).mean() / 2\n    loss.backward()\n"
        "    if i % 2:\n        opt.step()\n        opt.zero_grad()\n"
    ),
    "one step": "loss = net(x).pow(2).mean()\nloss.backward()\nopt.step()\n",
    "steps without a backward between them": (
        "loss = net(x).pow(2).mean()\nloss.backward()\nfor _ in range(3):\n    opt.step()\n"
    ),
    "a closure": (
        "opt = torch.optim.LBFGS(net.parameters(), max_iter=3)\n"
        "def closure():\n    opt.zero_grad()\n    loss = net(x).pow(2).mean()\n    loss.backward()\n    return loss\n"
        "for _ in range(3):\n    opt.step(closure)\n"
    ),
    "two networks against each other": (
        "other = nn.Linear(3, 3)\nmore = torch.optim.Adam(other.parameters())\n"
        "for _ in range(3):\n"
        "    fake = other(x)\n"
        "    opt.zero_grad(set_to_none=False)\n    (net(fake.detach()) - net(x)).mean().backward()\n    opt.step()\n"
        "    more.zero_grad(set_to_none=False)\n    (-net(fake).mean()).backward()\n    more.step()\n"
    ),
    "clipped between backward and step": (
        "for _ in range(3):\n    opt.zero_grad()\n    loss = net(x).pow(2).mean()\n    loss.backward()\n"
        "    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()\n"
    ),
    "clipped and stepped before the next backward": (
        "net(x).pow(2).mean().backward()\n"
        "for _ in range(3):\n    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()\n"
        "    opt.zero_grad()\n    net(x).pow(2).mean().backward()\n"
    ),
    "an average of the weights": (
        "import copy\nmean = copy.deepcopy(net).requires_grad_(False)\n"
        "for _ in range(3):\n    opt.zero_grad()\n    net(x).pow(2).mean().backward()\n    opt.step()\n"
        "    with torch.no_grad():\n        for a, b in zip(mean.parameters(), net.parameters()):\n            a.lerp_(b, 0.1)\n"
    ),
    "a field that is called step": "class Plan:\n    step = 3\nplan = Plan()\nplan.step\nx = 1\n",
}


@pytest.mark.parametrize("what", CORRECT)
def test_of_correct_loops_nothing_is_said(what: str) -> None:
    assert not said(NET, CORRECT[what])


# ------------------------------------------------------------------ lines that do nothing


def test_gradients_are_clipped_before_they_are_there() -> None:
    loop = (
        "for _ in range(3):\n    opt.zero_grad()\n    loss = net(x).pow(2).mean()\n"
        "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    loss.backward()\n    opt.step()\n"
    )
    (found,) = findings_of(NET, loop)
    assert found.headline.startswith("Gradients are clipped before") and found.cause.line == 4
    kept = [line for line in found.fixes[0].edit if not line.startswith("-")]
    assert [line.strip("+ ") for line in kept] == ["loss.backward()", "nn.utils.clip_grad_norm_(net.parameters(), 1.0)"]


SCHEDULED = "schedule = torch.optim.lr_scheduler.StepLR(opt, 5)"
LATE = (
    "for _ in range(3):\n    opt.zero_grad()\n    net(x).pow(2).mean().backward()\n    opt.step()\n"
    "    {}\n    schedule.step()\n"
)


def test_gradients_are_clipped_when_the_step_has_gone_by_them() -> None:
    (found,) = findings_of(NET, SCHEDULED, LATE.format("nn.utils.clip_grad_norm_(net.parameters(), 1.0)"))
    assert found.headline.startswith("Gradients are clipped when the step") and found.cause.line == 5
    mended = apply(LATE.format("nn.utils.clip_grad_norm_(net.parameters(), 1.0)"), found.fixes[0].edits)
    assert mended.index("clip_grad_norm_") < mended.index("opt.step()") and not said(NET, SCHEDULED, mended)


SELDOM = (
    "for i in range(6):\n    (net(x).pow(2).mean() / 2).backward()\n    if i % 2:\n        opt.step()\n"
    "        nn.utils.clip_grad_value_(net.parameters(), 1.0)\n        opt.zero_grad()\n"
)


def test_so_are_those_of_several_backwards() -> None:
    (found,) = findings_of(NET, SELDOM)
    assert found.headline.startswith("Gradients are clipped when the step") and found.cause.line == 5
    mended = apply(SELDOM, found.fixes[0].edits)
    assert mended.index("if i % 2") < mended.index("clip_grad_value_") < mended.index("opt.step()")
    assert not said(NET, mended)


def test_what_is_not_cleared_is_clipped_for_the_next_step() -> None:
    assert not said(NET, SELDOM.replace("        opt.zero_grad()\n", ""))


def test_a_norm_that_is_taken_behind_the_step_is_a_measurement() -> None:
    assert not said(NET, SCHEDULED, LATE.format("norm = nn.utils.clip_grad_norm_(net.parameters(), 1e9)"))


METHOD = """class Method:
    def descend(self, loss):
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        loss.backward()
method = Method()"""


@pytest.mark.parametrize(("between", "told"), [("", 1), ("    for part in (0, 1):\n    ", 0)])
def test_gradients_are_clipped_too_early_in_a_function_of_their_own(between: str, told: int) -> None:
    loop = (
        "for _ in range(3):\n    opt.zero_grad()\n    loss = net(x).pow(2).mean()\n"
        f"{between}    method.descend(net(x).pow(2).mean())\n    opt.step()\n"
    )
    found = findings_of(NET, METHOD, loop)
    assert [one.headline.startswith("Gradients are clipped before") for one in found] == [True] * told
    assert all(one.cause is not None and (one.cause.cell, one.cause.line) == (2, 3) for one in found)


@pytest.mark.parametrize("line", ["opt.step", "opt.zero_grad", "loss.backward"])
def test_a_method_that_is_named_and_not_called(line: str) -> None:
    loop = f"for _ in range(2):\n    loss = net(x).mean()\n    {line}\n"
    assert (("warning", f"`{line}` is not called.")) in said(NET, loop)


# ------------------------------------------------------------------ derivatives that are zero

CODES = (
    "enc, dec = nn.Linear(3, 4), nn.Linear(4, 1)\nopt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)"
)


def trained(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"x = torch.rand(8, 3)\nfor _ in range(3):\n    h = enc(x)\n{body}    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"


@pytest.mark.parametrize(
    "drawn, line, operation",
    [
        (False, "q = torch.round(h)", "round"),
        (False, "q = h.sign()", "sign"),
        (True, "q = torch.bernoulli(h.sigmoid())", "bernoulli"),
        (True, "q = torch.normal(h, 1.0)", "normal"),
    ],
)
def test_leaves_behind_an_operation_without_derivative_are_named(drawn: bool, line: str, operation: str) -> None:
    (found,) = findings_of(CODES, trained(line, "loss = dec(q).pow(2).mean()"))
    assert found.headline == f"`enc.weight` and `enc.bias` get only zeros through `{operation}`."
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 4)
    assert found.fixes[0].id == ("reparametrize" if drawn else "straight_through")


def test_the_gradient_can_be_passed_straight_through() -> None:
    (found,) = findings_of(CODES, trained("q = h.sign()", "loss = dec(q).pow(2).mean()"))
    assert found.fixes[0].edit == ("- q = h.sign()", "+ q = h + (h.sign() - h).detach()")


QUIET = {
    "straight through": ("q = h + (h.sign() - h).detach()", "loss = dec(q).pow(2).mean()"),
    "another path": ("q = torch.round(h)", "loss = dec(q).pow(2).mean() + h.pow(2).mean()"),
    "a metric": ("rounded = torch.round(h).sum()", "loss = dec(h).pow(2).mean()"),
    "a hook gives the gradient": (
        "q = torch.round(h)",
        "h.register_hook(torch.ones_like)",
        "loss = dec(q).pow(2).mean()",
    ),
}


@pytest.mark.parametrize("what", QUIET)
def test_of_a_leaf_that_is_reached_in_another_way_nothing_is_said(what: str) -> None:
    assert not said(CODES, trained(*QUIET[what]))


def test_a_second_call_may_reach_the_leaf_in_another_way() -> None:
    loop = trained("q = torch.round(h)", "loss = dec(q).pow(2).mean()") + "    enc(x).pow(2).mean().backward()\n"
    assert not said(CODES, loop)


def test_a_loss_that_is_computed_with_a_copy_names_the_copy() -> None:
    made = "import copy\nnet = nn.Linear(3, 1)\nmodel = copy.deepcopy(net)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"
    loop = (
        "for _ in range(3):\n    opt.zero_grad()\n    loss = model(torch.ones(2, 3)).pow(2).mean()\n"
        "    loss.backward()\n    opt.step()\n"
    )
    (found,) = findings_of(made, loop)
    assert found.headline == "`opt.step()` changed nothing."
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 3)
    assert found.fixes[0].edits[0].new == "model.parameters()"


def test_a_step_without_gradients_names_the_line_that_cuts_them_off() -> None:
    nets = (
        "g, d = nn.Linear(3, 3), nn.Linear(3, 1)\nopt_g = torch.optim.SGD(g.parameters(), lr=0.1)\n"
        "opt_d = torch.optim.SGD(d.parameters(), lr=0.1)\nx = torch.ones(8, 3)"
    )
    loop = (
        "for _ in range(3):\n    fake = g(x)\n    seen = d(fake.detach())\n    loss_d = seen.mean() - d(x).mean()\n"
        "    loss_g = -seen.mean()\n    opt_g.zero_grad()\n    loss_g.backward(retain_graph=True)\n"
        "    opt_d.zero_grad()\n    loss_d.backward()\n    opt_g.step()\n    opt_d.step()\n"
    )
    (found,) = findings_of(nets, loop)
    assert found.headline == "`opt_g.step()` changed nothing." and found.cause.line == 3
    assert "detach" in found.names
    added = [line for line in found.fixes[0].edit if line.startswith("+")]
    assert added == ["+ seen_again = d(fake)", "+ loss_g = -seen_again.mean()"]
