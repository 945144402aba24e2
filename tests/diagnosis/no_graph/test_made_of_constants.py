"""Roots that are made of constants: in some pass a branch, or a loop without a pass, makes the loss new."""

from __future__ import annotations

import pytest
from told import findings_of, with_lineage

from graphwidget.model import Finding

MADE = "net = nn.Linear(3, 2)\nopt = torch.optim.SGD(net.parameters(), 0.1)"
RUN = """for mask in ([True, False], [False, False]):
    pred = net(torch.ones(2, 3))
    loss = loss_of(pred, torch.tensor(mask))
    opt.zero_grad()
    loss.backward()
    opt.step()"""
BRANCH = """def loss_of(pred, mask):
    if not mask.any():
        return torch.zeros(())
    return pred[mask].mean()"""


def measured(*cells: str) -> Finding:
    (found,) = (one for one in with_lineage(*cells) if one.kind == "no_grad")
    return found


@pytest.mark.parametrize(
    ("loss", "place", "edit"),
    [
        (BRANCH, 3, ("- return torch.zeros(())", "+ return pred.sum() * 0")),
        (
            "def loss_of(pred, mask):\n    total = torch.zeros(1)\n    for one in pred[mask]:\n"
            "        total = total + one.mean()\n    return total",
            2,
            ("- total = torch.zeros(1)", "+ total = torch.zeros(1) + pred.sum() * 0"),
        ),
        (
            "def nothing():\n    return torch.zeros((), requires_grad=False)\n"
            "def loss_of(pred, mask):\n    if not mask.any():\n        return nothing()\n    return pred[mask].mean()",
            2,
            ("- return nothing()", "+ return pred.sum() * 0"),
        ),
        (
            "def parts(out, mask):\n    a = out['a']\n    if not mask.any():\n"
            "        return {'x': a.new_zeros(()), 'y': 2.0 * torch.tensor(0)}\n"
            "    return {'x': a[mask].mean(), 'y': a.mean()}\n"
            "def loss_of(pred, mask):\n    return sum(parts({'a': pred}, mask).values())",
            4,
            (
                "- return {'x': a.new_zeros(()), 'y': 2.0 * torch.tensor(0)}",
                "+ return {'x': a.sum() * 0, 'y': 2.0 * (a.sum() * 0)}",
            ),
        ),
    ],
)
def test_what_is_made_new_gets_the_graph_of_the_pass(loss: str, place: int, edit: tuple[str, ...]) -> None:
    found = measured(MADE, loss, RUN)
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (2, place)
    assert "Earlier passes had a graph" in found.text
    assert (found.fixes[0].id, found.fixes[0].edit, found.fixes[0].choice) == ("keep_a_graph", edit, False)
    skip = found.fixes[1]
    assert skip.choice and skip.edit == ("- loss.backward()", "+ if loss.requires_grad:", "+     loss.backward()")


def test_a_line_that_only_makes_data_is_not_blamed() -> None:
    loader = "box = lambda *v: torch.tensor([v], dtype=torch.float32)\nboxes = box(1, 2, 3)"
    run = RUN.replace("torch.ones(2, 3)", "box(1, 2, 3).expand(2, 3)")
    found = measured(MADE, BRANCH, loader, run)
    assert "torch.zeros(())" in found.text and "box" not in found.text
    assert not any("stack" in fix.text for fix in found.fixes)


def test_a_number_that_stayed_zero() -> None:
    loss = (
        "def loss_of(pred, mask):\n    total = 0\n    for one in pred[mask]:\n        total = total + one.mean()\n"
        "    return total if torch.is_tensor(total) else torch.tensor(total, dtype=torch.float32)"
    )
    found = measured(MADE, loss, RUN)
    assert found.made_at is not None and found.made_at.line == 5 and "leaves the graph" not in found.text
    assert "pred.sum() * 0 if" not in found.fixes[0].edit[-1]  # what stands there in other passes stays
    assert found.fixes[0].edit[-1].endswith("else pred.sum() * 0")


def test_an_old_graph_is_not_used_again() -> None:
    """In the pass that fails, `pred` is that of the pass before, whose graph is freed."""
    run = RUN.replace("    pred = net(torch.ones(2, 3))", "    if mask[0]:\n        pred = net(torch.ones(2, 3))")
    loss = BRANCH.replace("pred, mask", "mask").replace("pred[mask]", "net(torch.ones(2, 3))[mask]")
    found = measured(MADE, loss, run.replace("loss_of(pred, ", "loss_of("))
    assert found.fixes[0].id == "skip_the_call"
    assert all(not fix.edits for fix in found.fixes if fix.id == "keep_a_graph")


def test_the_wrong_variable_gets_words_alone() -> None:
    """Where no pass had a graph, a zero with one would hide that nothing trains."""
    found = measured(
        MADE, "total = torch.zeros(1)\nfor _ in range(2):\n    loss = net(torch.ones(1, 3)).mean()\ntotal.backward()"
    )
    assert [(fix.id, fix.edits) for fix in found.fixes] == [("use_the_output", ())]
    assert "`total = torch.zeros(1)`" in found.text and "`loss` has one" in found.fixes[0].text


def test_where_no_pass_had_a_graph_yet_a_zero_is_a_choice() -> None:
    found = measured(MADE, BRANCH, RUN.replace("([True, False], [False, False])", "([False, False],)"))
    assert found.fixes[0].id == "keep_a_graph" and found.fixes[0].choice


def test_a_leaf_that_was_to_require_grad_stays_the_cause() -> None:
    found = measured("w = torch.ones(3)\nloss = (w * 2).sum()\nloss.backward()")
    assert found.fixes[0].id == "unfreeze"


@pytest.mark.parametrize(
    "cut",
    [
        "    return pred.detach().mean() + torch.zeros(())",
        "    with torch.no_grad():\n        return pred.mean() + torch.zeros(())",
        "    total = torch.zeros(())\n    for one in pred:\n        total = total + one.mean().item()\n    return total",
    ],
)
def test_a_cut_beside_a_constant_is_the_cause(cut: str) -> None:
    found = measured(MADE, f"def loss_of(pred, mask):\n{cut}", RUN)
    assert not {"keep_a_graph", "use_the_output", "skip_the_call"} & {fix.id for fix in found.fixes}


def test_a_frozen_model_beside_a_constant_is_the_cause() -> None:
    loss = "net.requires_grad_(False)\ndef loss_of(pred, mask):\n    return pred.mean() + torch.zeros(())"
    found = measured(MADE, loss, RUN)
    assert "torch.zeros" not in found.text


def test_without_a_measurement_it_is_said_with_if() -> None:
    (found,) = (one for one in findings_of(MADE, BRANCH, RUN) if one.kind == "no_grad")
    assert found.made_at is not None and found.made_at.line == 3
    assert "if nothing else got into `loss`" in found.text and not found.fixes[0].edits


def test_a_line_before_all_passes_is_not_what_differs() -> None:
    trainer = "class Trainer:\n    def step(self, data):\n        self.loss = self.loss_of(data)\n        self.loss.backward()"
    made = "class Task(Trainer):\n    def loss_of(self, data):\n        return net(data).sum() if len(data) else data.sum()"
    data = "row = lambda *v: torch.tensor([v])\ndata = [row(1., 2., 3.), torch.zeros(0, 3)]"
    run = "task = Task()\nfor one in data:\n    task.step(one)"
    (found,) = (one for one in findings_of(MADE, trainer, made, data, run) if one.kind == "no_grad")
    assert "row" not in found.text and not any("stack" in fix.text for fix in found.fixes)
