"""A part of a loss that has no graph any more, as what decides about ``create_graph`` has changed."""

import pytest
from told import findings_of, said

MODEL = (
    "class Model(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))\n"
    "        self.build = True\n"
    "    def forward(self, x):\n"
    "        x = x.clone().requires_grad_(True)\n"
    "        with torch.enable_grad():\n"
    "            e = self.net(x).sum(1)\n"
    "            g, = torch.autograd.grad(e.sum(), x, create_graph={flag}, retain_graph=True)\n"
    "        return e, -g\n"
    "model = Model()\nopt = torch.optim.SGD(model.parameters(), lr=0.01)\n"
    "data = [(torch.randn(4, 3), torch.randn(4), torch.randn(4, 3)) for _ in range(2)]\n"
    "def losses(x, y, f):\n    e, g = model(x)\n    return (e - y).pow(2).mean(), (g - f).pow(2).mean()"
)
TRAIN = (
    "def train(model, data):\n    {begin}\n    for batch in data:\n        a, b = losses(*batch)\n        loss = a + 2 * b\n"
    "        opt.zero_grad()\n        loss.backward()\n        opt.step()"
)
CHECK = (
    "def check(net, data):\n    {off}\n    with torch.no_grad():\n        return sum(sum(losses(*one)) for one in data)"
)
RUN = "for epoch in range(3):\n    train(model, data)\n    check(model, data)"


def cells(flag: str = "self.training", begin: str = "pass", off: str = "net.eval()", run: str = RUN) -> tuple[str, ...]:
    return MODEL.replace("{flag}", flag), TRAIN.format(begin=begin), CHECK.format(off=off), run


LOST = {
    "eval": cells(),
    "train(False)": cells(off="net.train(False)"),
    "a condition around it": cells("self.training or not torch.is_grad_enabled()"),
    "a sum that begins at 0": tuple(one.replace("a + 2 * b", "sum([a, 2 * b])") for one in cells()),
    "in the same loop": cells(
        off="pass",
        run="for step in range(4):\n    a, b = losses(*data[0])\n    loss = a + 2 * b\n    opt.zero_grad()\n"
        "    loss.backward()\n    opt.step()\n    if step == 1:\n        model.eval()\n",
    ),
}


@pytest.mark.parametrize("how", LOST)
def test_a_part_without_a_graph_since_the_model_left_training_mode_is_told(how: str) -> None:
    (found,) = findings_of(*LOST[how])
    assert "no step goes by `g`" in found.headline and "create_graph=self.training" in found.headline
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 10)
    assert "has switched it off" in found.text and "adds a constant" in found.text
    assert [fix.id for fix in found.fixes] == ["training_mode", "create_graph"]
    assert "+ model.train()" in "\n".join(found.fixes[0].edit)
    assert "create_graph=True" in "\n".join(found.fixes[1].edit)


def test_the_mode_is_restored_in_the_loop_if_that_leads_to_the_evaluation() -> None:
    (found,) = findings_of(*LOST["in the same loop"])
    assert [edit.start[0] for edit in found.fixes[0].edits] == [2]
    (found,) = findings_of(*LOST["eval"])
    assert [edit.start[0] for edit in found.fixes[0].edits] == [3]


def test_a_flag_of_the_program_s_own_has_the_edit_alone() -> None:
    (found,) = findings_of(*cells("self.build", off="net.build = False"))
    assert "create_graph=self.build" in found.headline and [fix.id for fix in found.fixes] == ["create_graph"]


def test_a_model_without_one_place_for_its_mode_gets_no_edit_for_it() -> None:
    (found,) = findings_of(*cells(off="net.eval(); net.net.eval()"))
    assert [fix.id for fix in found.fixes] == ["create_graph"]


CORRECT = {
    "training mode again": cells(begin="model.train()"),
    "restored by the evaluation": cells(run=f"{RUN}\n    model.train()"),
    "evaluated at the end": cells(run="train(model, data)\ntrain(model, data)\ncheck(model, data)"),
    "always": cells("True"),
    "a schedule": cells("epoch < 1"),
    "what comes and goes": cells("self.build", run=f"{RUN}\n    model.build = epoch == 1"),
    "a gradient that evaluation asks for": cells(
        begin="model.train()",
        run=f"{RUN}\nmodel.eval()\na, b = losses(*data[0])\nscore = a + 2 * b\nscore.backward()",
    ),
}


@pytest.mark.parametrize("how", CORRECT)
def test_nothing_is_said_of_what_is_meant(how: str) -> None:
    assert [one for one in said(*CORRECT[how]) if "no step goes by" in one] == []
