"""Optimizers that are made, and have made no step yet, or never make one."""

import pytest
from told import findings_of


@pytest.mark.parametrize("waits", [True, False])
def test_beside_steps_by_hand_what_waits_for_an_optimizer_is_not_called_untrained(waits: bool) -> None:
    """A sampler moves points over an energy that is trained later: a first cell of a correct program."""
    made = "energy = nn.Linear(2, 1)\nopt = torch.optim.Adam(energy.parameters())\n"
    made += "" if waits else "energy.weight = nn.Parameter(torch.ones(1, 2))"
    sample = (
        "x = torch.randn(4, 2).requires_grad_()\nfor _ in range(8):\n    energy(x).pow(2).sum().backward()\n"
        "    with torch.no_grad():\n        x -= 0.1 * x.grad\n        x.grad.zero_()"
    )
    told = [one.names for one in findings_of(made, sample) if "never trained" in one.headline]
    assert told == [("energy.weight",)] * (not waits)


TWO = (
    "net, head = nn.Linear(3, 2), nn.Linear(2, 1)\nopt = torch.optim.SGD(head.parameters(), lr=0.1)\n"
    "other = torch.optim.SGD(net.parameters(), lr=0.1)"
)
STEPS = (
    "for k in range(5):\n    opt.zero_grad()\n    head(net(torch.ones(2, 3))).pow(2).sum().backward()\n    opt.step()\n"
)


def test_an_optimizer_that_makes_no_step_is_named() -> None:
    (found,) = findings_of(TWO, STEPS)
    assert found.severity == "warning" and set(found.names) == {"net.weight", "net.bias"}
    assert found.headline.endswith("are never trained: `other` makes no step.")
    assert found.cause is not None and found.cause.line == 3 and not found.fixes[0].edits


@pytest.mark.parametrize(
    "cells",
    [
        (TWO, f"{STEPS}raise ValueError"),  # before its first step
        (TWO, f"{STEPS}other.step()"),
        (TWO.rsplit("\n", 1)[0], STEPS, TWO.rsplit("\n", 1)[1]),  # it has just been made
    ],
)
def test_an_optimizer_that_may_still_make_a_step_is_not_blamed(cells: tuple[str, ...]) -> None:
    assert [one for one in findings_of(*cells) if "never trained" in (one.headline or "")] == []
