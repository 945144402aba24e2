"""Which line cut the graph, in programs with models, gradients and losses of their own."""

from told import findings_of


def test_a_leaf_that_was_scaled_when_it_was_made_is_made_a_leaf() -> None:
    made = "ws = [torch.ones(2, requires_grad=True) * 0.1]"
    (found,) = findings_of(made, "sum(w.sum() for w in ws).backward()\nfor w in ws:\n    w = w - 0.1 * w.grad")
    assert found.fixes[0].id == "leaf"
    assert found.fixes[0].edits[0].new == "(torch.ones(2) * 0.1).requires_grad_()"


def test_a_complex_loss_is_made_real_where_it_is_reduced() -> None:
    loss = "def spectral(x):\n    return (torch.fft.rfft(x) ** 2).mean()\nx = torch.ones(4, requires_grad=True)"
    (found,) = findings_of(loss, "loss = spectral(x)\nloss.backward()")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 2)
    assert found.fixes[0].edits[0].new == ".abs()"


FIELD = (
    "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = nn.Linear(2, 1)\n"
    "    def field(self, x):\n        return torch.autograd.grad((self.net(x) ** 2).sum(), x)[0]\n"
    "model = Model()\nopt = torch.optim.SGD(model.parameters(), 0.1)\nx = torch.ones(3, 2, requires_grad=True)"
)


def test_a_gradient_without_a_graph_in_a_method_is_the_cut_and_not_a_target_that_is_detached() -> None:
    step = "target = x.sin().detach()\nloss = (model.field(x) - target).pow(2).mean()\nloss.backward()"
    (found,) = findings_of(FIELD, step)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 6)
    assert [fix.id for fix in found.fixes] == ["create_graph"]


def test_what_is_cut_of_a_trained_model_is_the_cut_in_spite_of_a_gradient_beside_it() -> None:
    step = (
        "force = model.field(x)\nenergy = model.net(x).detach()\n"
        "loss = (energy.mean() - force).pow(2).mean()\nloss.backward()"
    )
    (found,) = findings_of(FIELD, step)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 2)
