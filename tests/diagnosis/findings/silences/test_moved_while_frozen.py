"""Parameters that are frozen during a training, and that their optimizer goes on moving."""

import pytest
from told import findings_of, said

NET = "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\nopt = torch.optim.{}\nx = torch.randn(8, 3)"
ADAM, SGD = NET.format("Adam(net.parameters(), lr=0.1)"), NET.format("SGD(net.parameters(), lr=0.1)")
TRAIN = (
    "def train():\n    for _ in range(4):\n        opt.zero_grad(set_to_none=False)\n"
    "        net(x).pow(2).mean().backward()\n        opt.step()"
)
FREEZE = "for p in net[0].parameters():\n    p.requires_grad = False\ndel p"


def test_zeros_in_place_of_none_and_the_memory_of_adam() -> None:
    (found,) = findings_of(ADAM, TRAIN, "train()", FREEZE, "train()")
    assert found.headline == "`net[0].weight` and `net[0].bias` are frozen, and still moved by the steps."
    assert found.severity == "warning" and "is zeros" in found.text
    assert found.cause is not None and found.cause.source == "opt.zero_grad(set_to_none=False)"
    assert [edit.new for edit in found.fixes[0].edits] == ["opt.zero_grad()"]


def test_an_old_gradient_that_nothing_clears() -> None:
    train = TRAIN.replace("opt.zero_grad(set_to_none=False)", "net[2].zero_grad()")
    found = [one for one in findings_of(SGD, train, "train()", FREEZE, "train()") if "frozen" in one.headline]
    assert len(found) == 1 and "an old one" in found[0].text
    assert found[0].cause is not None and found[0].cause.source == "p.requires_grad = False"
    assert found[0].fixes[0].edits[0].new.strip() == "p.grad = None"


@pytest.mark.parametrize(
    "cells",
    [
        (ADAM, TRAIN.replace("set_to_none=False", ""), "train()", FREEZE, "train()"),
        (SGD, TRAIN, "train()", FREEZE, "train()"),  # zeros move nothing there
        (ADAM, FREEZE, TRAIN, "train()"),
        (ADAM, TRAIN, "train()", FREEZE.replace("\n  ", "\n    p.grad = None\n  "), "train()"),
        (ADAM, TRAIN, "train()", FREEZE, "net.zero_grad()", TRAIN.replace("net(x)", "net[2](x[:, :1].expand(8, 4))")),
        (
            SGD,
            "more = torch.optim.Adam(net[2].parameters(), lr=0.1)",
            TRAIN,
            "train()",
            FREEZE,
            TRAIN.replace("opt.", "more."),
            "train()",
        ),
    ],
)
def test_what_is_frozen_and_rests_is_not_told(cells: tuple[str, ...]) -> None:
    assert not [text for _, text in said(*cells) if "frozen" in text]
