"""Gradients that are cleared between the backward and the step, and the order of lines that keeps them."""

from __future__ import annotations

import pytest
from told import with_lineage

from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Finding

BEFORE = """from contextlib import contextmanager
net = nn.Linear(2, 1)
opt = torch.optim.{made}
@contextmanager
def fresh(o):
    try:
        yield
    finally:
        o.zero_grad(set_to_none={none})
def clear(module):
    for p in module.parameters():
        p.grad = None
"""

LOOP = "\nfor _ in range(3):\n    step()\n"


def told(body: str, none: bool = True, made: str = "AdamW(net.parameters(), 0.1)") -> tuple[list[Finding], str]:
    function = "def step():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    cell = BEFORE.format(none=none, made=made) + function + LOOP
    found = [one for one in with_lineage(cell) if one.severity == "warning"]
    edited = text_edit.apply(cell, found[0].fixes[0].edits) if found else cell
    inside = edited.split("def step():\n")[1].split("\nfor")[0]
    return found, "\n".join(line[4:] for line in inside.splitlines())


LOSS = "loss = net(torch.ones(2)).pow(2).sum()"
CLIP = "nn.utils.clip_grad_norm_(net.parameters(), 1.0)"


@pytest.mark.parametrize("none", [True, False])
def test_at_the_end_of_a_with(none: bool) -> None:
    found, after = told(
        f"with fresh(opt):\n    {LOSS}\n    loss.backward()\n{CLIP}\nopt.step()\nreturn loss.item()", none
    )
    (one,) = found
    assert one.cause is not None and "zero_grad" in one.cause.source and one.cause.function == "fresh"
    assert (
        after.rstrip()
        == f"with fresh(opt):\n    {LOSS}\n    loss.backward()\n    {CLIP}\n    opt.step()\nreturn loss.item()"
    )


def test_in_a_loop_over_the_parameters_and_in_a_function() -> None:
    loop = "for p in net.parameters():\n    p.grad = None"
    _, after = told(f"{LOSS}\nloss.backward()\n{loop}\nopt.step()")
    assert after.rstrip() == f"{LOSS}\nloss.backward()\nopt.step()\n{loop}"
    found, after = told(f"{LOSS}\nloss.backward()\nif True:\n    clear(net)\nopt.step()")
    assert len(found) == 1 and found[0].cause is not None and found[0].cause.source == "p.grad = None"


def test_a_step_before_the_backward_moves_behind_it() -> None:
    _, after = told(f"clear(net)\nopt.step()\n{LOSS}\nloss.backward()")
    assert after.rstrip() == f"clear(net)\n{LOSS}\nloss.backward()\nopt.step()"


def test_steps_of_other_optimizers_come_before_what_clears_for_all() -> None:
    both = "AdamW([net.weight], 0.1)\nother = torch.optim.SGD([net.bias], 0.1)"
    body = "clear(net)\nnet.bias.detach().add(0)\n(net.weight ** 2).sum().backward()\nclear(net)\n(net.bias ** 2).sum().backward()"
    found, after = told(f"{body}\nopt.step()\nother.step()", made=both)
    assert len(found) == 1 and after.rstrip().endswith("opt.step()\nother.step()\nclear(net)")


@pytest.mark.parametrize(
    "body",
    [
        f"with fresh(opt):\n    {LOSS}\n    loss.backward()\n    opt.step()",
        f"clear(net)\n{LOSS}\nloss.backward()\nopt.step()\nclear(net)\nopt.step()",
        f"{LOSS}\nloss.backward()\nwith torch.no_grad():\n    for p in net.parameters():\n        p -= 0.1 * p.grad\nclear(net)\nopt.step()",
    ],
)
def test_gradients_that_were_used_are_no_finding(body: str) -> None:
    assert not told(body)[0]
