"""Arrays and numbers that come out of tensors, and that a tensor of the loss is made of: all lines stay with tensors."""

import ast

import pytest
from told import findings_of, record_of

from graphwidget.diagnosis.no_graph.numbers.in_torch import Known, write
from graphwidget.diagnosis.no_graph.numbers.round_trips import with_torch
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit

SET_UP = """import numpy as np
import torch.nn.functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
target = np.zeros((8, 3), dtype=np.float32)
"""


def fixed(loop: str, set_up: str = SET_UP) -> str:
    """A cell after the fix that stays with tensors; empty: there is none, or it has no edits."""
    found = [one for one in findings_of(set_up, loop) if one.severity == "error"]
    fixes = [fix for one in found for fix in one.fixes if fix.id == "differentiable_op" and fix.edits]
    edits = [edit for edit in fixes[0].edits if edit.cell == 2] if fixes else []
    return text_edit.apply(loop, edits) if fixes else ""


def test_an_array_that_comes_back_as_a_tensor_stays_one() -> None:
    loop = "out = net(x).numpy()\nloss = F.cross_entropy(torch.from_numpy(out), y)\nloss.backward()"
    assert fixed(loop) == "out = net(x)\nloss = F.cross_entropy(out, y)\nloss.backward()"


def test_an_array_that_was_detached_stays_a_tensor_too() -> None:
    loop = "out = net(x).detach().cpu().numpy()\nloss = F.cross_entropy(torch.from_numpy(out), y)\nloss.backward()"
    assert fixed(loop).startswith("out = net(x)\nloss = F.cross_entropy(out, y)")


def test_to_detach_comes_first_at_the_error_and_the_trial_decides() -> None:
    loop = "out = net(x).numpy()\nloss = F.cross_entropy(torch.from_numpy(out), y)\nloss.backward()"
    assert [fix.id for fix in findings_of(SET_UP, loop)[0].fixes] == ["detach", "differentiable_op"]


def test_a_function_of_the_program_computes_with_tensors_then() -> None:
    loop = (
        "def mse(a, b):\n    return np.mean((a - b) ** 2)\n"
        "out = net(x)\nerr = mse(out.numpy(), target)\nloss = torch.tensor(err, requires_grad=True)\nloss.backward()"
    )
    assert fixed(loop) == (
        "def mse(a, b):\n    return torch.mean((a - b) ** 2)\n"
        "out = net(x)\nerr = mse(out, torch.as_tensor(target))\nloss = err\nloss.backward()"
    )


def test_a_function_that_others_give_arrays_is_left_as_it_is() -> None:
    loop = (
        "def mse(a, b):\n    return np.mean((a - b) ** 2)\nprint(mse(target, target))\n"
        "err = mse(net(x).numpy(), target)\nloss = torch.tensor(err, requires_grad=True)\nloss.backward()"
    )
    (finding,) = (one for one in findings_of(SET_UP, loop) if one.severity == "error")
    assert not finding.fixes[1].edits and "Stay with tensors" in finding.fixes[1].text


def test_a_forward_stays_with_tensors() -> None:
    loop = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(4, 3)\n"
        "    def forward(self, x):\n        h = np.maximum(self.a(x).numpy(), 0)\n        return torch.from_numpy(h)\n"
        "Net()(x).sum().backward()"
    )
    assert "h = torch.clamp(self.a(x), min=0)\n        return h\n" in fixed(loop)


def test_what_is_kept_to_look_at_is_kept_without_its_graph() -> None:
    loop = (
        "seen = []\nerr = np.square(net(x).numpy() - target).mean()\nseen.append(err)\nprint(err)\n"
        "loss = torch.tensor(err)\nloss.backward()"
    )
    new = fixed(loop)
    assert "seen.append(err.detach().cpu().numpy())\nprint(err)\nloss = err" in new
    assert "torch.square(net(x) - torch.as_tensor(target)).mean()" in new


def test_what_torch_does_not_have_is_named() -> None:
    loop = "out = np.unwrap(net(x).numpy())\nloss = torch.from_numpy(out).sum()\nloss.backward()"
    fix = findings_of(SET_UP, loop)[0].fixes[1]
    assert not fix.edits and "`np.unwrap`" in fix.text


@pytest.mark.parametrize(
    "loop",
    [
        "curve = [np.mean(net(x).numpy())]\nprint(torch.tensor(curve).mean())",  # of no loss
        "action = net(x).numpy()\nr = env.step(action)\nloss = (torch.tensor(r) * net(x)).sum()\nloss.backward()",
        "best = net(x).numpy().argmax(axis=1)\nloss = F.cross_entropy(net(x), torch.tensor(best))\nloss.backward()",
        "out = net(x).numpy()\nloss = F.cross_entropy(net(x), y)\nloss.backward()\nprint(out.mean())",
    ],
)
def test_an_array_that_no_loss_is_computed_through_is_only_detached(loop: str) -> None:
    (finding,) = (one for one in findings_of(SET_UP, loop) if one.severity == "error")
    assert [fix.id for fix in finding.fixes] == ["detach"]


def test_numbers_in_a_list_are_stacked() -> None:
    loop = (
        "losses = []\nfor a, b in zip(x, target):\n    losses.append(float(net(a).sum()))\n"
        "loss = torch.tensor(losses).mean()\nloss.backward()"
    )
    record = record_of(SET_UP, loop)
    run = record.runs[max(record.runs)]
    fix = with_torch(record, run, syntax.statements_at(loop, 3)[-1])
    assert fix is not None
    new = text_edit.apply(loop, fix.edits)
    assert "losses.append(net(a).sum())\nloss = torch.stack(losses).mean()" in new


@pytest.mark.parametrize(
    ("written", "new"),
    [
        ("np.std(a, axis=0)", "torch.std(a, dim=0, correction=0)"),
        ("np.max(a, axis=1)", "torch.amax(a, dim=1)"),
        ("np.concatenate([a, b], axis=1)", "torch.cat([a, b], dim=1)"),
        ("a.astype(np.float32)", "a.to(torch.float32)"),
        ("a.max(axis=1, keepdims=True)", "a.amax(dim=1, keepdim=True)"),
        ("np.sum(a, 1)", "torch.sum(a, dim=1)"),
        ("math.exp(a)", "torch.exp(a)"),
        ("a * known", "a * torch.as_tensor(known)"),
        ("torch.tensor(a, device=d, dtype=t)", "a.to(d, t)"),
        ("a.astype(int)", "a.astype(int)"),
    ],
)
def test_what_numpy_computes_torch_computes(written: str, new: str) -> None:
    node = ast.parse(written, mode="eval").body
    assert ast.unparse(write(node, {"a", "b"}, (), Known({}, (), {"known"})).node) == new


def test_a_name_that_is_bound_anew_before_it_is_read_is_another_value() -> None:
    loop = (
        "for i in range(2):\n    out = net(x).numpy()\n    loss = F.cross_entropy(torch.from_numpy(out), y)\n"
        "    loss.backward()\n    print(out.mean())\n    top = out.max()\n"
        "with torch.no_grad():\n    out = net(x)\n    best = torch.max(out.data, 1)"
    )
    mended = fixed(loop)
    assert "torch.max(out.data, 1)" in mended and "top = out.detach().cpu().numpy().max()" in mended


@pytest.mark.parametrize(
    ("loop", "was"),
    [
        ("loss = torch.tensor(net(x).mean().item(), requires_grad=True)", "was a number"),
        ("loss = torch.tensor(float(net(x).mean()), requires_grad=True)", "was a number"),
        (
            "a = net(x).mean().item()\nb = net(y).mean().item()\nloss = torch.tensor(a + b, requires_grad=True)",
            "were numbers",
        ),
        ("out = net(x).detach().numpy()\nloss = torch.from_numpy(out).requires_grad_().sum()", "was an array"),
        ("out = net(x).tolist()\nloss = torch.tensor(out, requires_grad=True).sum()", "was a list"),
        (
            "a = net(x).mean().item()\nb = net(y).detach().numpy()\nloss = torch.tensor(b * a, requires_grad=True).sum()",
            "were a number and an array",
        ),
    ],
)
def test_what_was_taken_out_is_called_what_it_was(loop: str, was: str) -> None:
    cell = f"net = nn.Linear(2, 1)\nx, y = torch.ones(3, 2), torch.ones(1, 2)\n{loop}\nloss.backward()"
    record = record_of(cell)
    (run,) = record.runs.values()
    tree = syntax.parse(cell)
    assert tree is not None
    fix = with_torch(record, run, tree.body[2])
    assert fix is not None and fix.edits
    assert fix.price == f"The gradient then flows through what {was}."
