"""An input that is used only inside a custom Function of the graph: a re-entrant checkpoint, or one of the program's."""

import pytest
from told import findings_of

NET = (
    "from torch.utils.checkpoint import checkpoint\nx = torch.randn(4, 3, requires_grad=True)\n"
    "net, head = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), nn.Linear(3, 1)"
)
ASKED = "params = [*head.parameters(), *net.parameters()]\ngrads = torch.autograd.grad(loss, params)"
RUNS = {
    "a module": "y = checkpoint(net, x, use_reentrant=True)",
    "a lambda": "y = checkpoint(lambda z: net(z) * 2, x, use_reentrant=True)",
    "a function": "def run(z):\n    return torch.relu(net(z))\ny = checkpoint(run, x, use_reentrant=True)",
    "in parts": "from torch.utils.checkpoint import checkpoint_sequential\n"
    "y = checkpoint_sequential(nn.Sequential(net, nn.Tanh()), 2, x, use_reentrant=True)",
    "a method": "class Model:\n    def __init__(self):\n        self.inner = net\n    def run(self, z):\n"
    "        return self.inner(z)\ny = checkpoint(Model().run, x, use_reentrant=True)",
}


@pytest.mark.parametrize("case", RUNS)
def test_an_input_inside_of_a_reentrant_checkpoint_gets_the_edit_of_the_checkpoint(case: str) -> None:
    (found,) = findings_of(NET, RUNS[case], "loss = head(y).sum()", ASKED)
    assert "inside of a re-entrant checkpoint" in found.text and "`net[0].weight`" in found.headline
    assert found.made_at is not None and found.made_at.cell == 2
    (fix,) = found.fixes
    assert fix.id == "use_reentrant_false" and [edit.new for edit in fix.edits] == ["False"]


def test_a_line_that_cuts_inside_of_the_checkpoint_comes_first() -> None:
    run = "def run(z):\n    return net(z).detach() + z\ny = checkpoint(run, x, use_reentrant=True)"
    (found,) = findings_of(NET, run, "loss = head(y).sum()", ASKED)
    assert "`detach` cuts the graph" in found.text and found.fixes[0].id == "find_the_cut"


def test_what_is_used_elsewhere_is_not_said_to_be_inside() -> None:
    cells = ("other = nn.Linear(3, 3)\ny = checkpoint(other, x, use_reentrant=True) + net(x).detach()",)
    (found,) = findings_of(NET, *cells, "loss = head(y).sum()", ASKED)
    assert "inside of" not in found.text and "`detach` cuts the graph" in found.text


OWN = """class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x{taken}):
        {body}
        return x * {used}
    @staticmethod
    def backward(ctx, g):
        return g{nones}"""


def test_a_list_of_tensors_that_a_function_was_applied_to_is_no_argument() -> None:
    function = OWN.format(taken=", ws", body="ctx.ws = ws", used="ws[0] * ws[1]", nones=", None")
    weights = "ws = [torch.ones(3, requires_grad=True) for _ in range(2)]"
    (found,) = findings_of(
        NET, function, weights, "loss = Solve.apply(x, ws).sum()", "torch.autograd.grad(loss, [x, *ws])"
    )
    assert "inside of `Solve`, a custom Function" in found.text and found.fixes[0].id == "pass_parameters"


def test_a_module_that_a_function_takes_from_outside_is_to_be_passed() -> None:
    function = OWN.format(taken="", body="y = net(x)", used="y", nones="")
    (found,) = findings_of(NET, function, "loss = head(Solve.apply(x)).sum()", ASKED)
    assert found.fixes[0].id == "pass_parameters" and "`Solve.apply(x, *net.parameters())`" in found.fixes[0].text


def test_a_function_that_reads_nothing_else_is_not_blamed() -> None:
    function = OWN.format(taken="", body="pass", used="2", nones="")
    (found,) = findings_of(NET, function, "loss = head(Solve.apply(x)).sum()", ASKED)
    assert "Solve" not in found.text and found.fixes[0].id in ("allow_unused", "use_input")
