"""An input that was not used: the line ahead of it that cuts, and what to do where an optimizer holds it."""

from told import findings_of

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


def test_a_gradient_of_what_is_linear_does_not_depend_on_its_input():
    helper = "def grad(u, x):\n    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]"
    cell = "x = torch.ones(3, 1, requires_grad=True)\nnet = nn.Sequential(nn.Linear(1, 4), nn.Linear(4, 1))\ny_x = grad(net(x), x)\ny_xx = grad(y_x, x)"
    (found,) = findings_of(helper, cell)
    assert "linear" in found.text and (found.cause.cell, found.cause.line) == (1, 2)
    assert [fix.id for fix in found.fixes] == ["use_input", "allow_unused"]
