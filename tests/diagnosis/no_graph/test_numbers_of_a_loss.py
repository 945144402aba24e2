"""A number that is taken out of a parameter and goes into a loss at other lines: all of them stay with the tensor."""

from dataclasses import replace

import pytest
from told import record_of, with_lineage

from graphwidget.diagnosis.no_graph.numbers.of_a_loss import made_numbers
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Lineage, MeasuredCut, TextLine

MODEL = """import math
import numpy as np
class Survival(nn.Module):
    def __init__(self):
        super().__init__()
        self.risk, self.log_shape = nn.Linear(3, 1), nn.Parameter(torch.zeros(()))
    {decorator}
    def shape(self):
        return self.log_shape.exp().item()
    def nll(self, x, t):
        k = self.shape{call}
        {line}
        return (torch.exp(k * (t.log() - self.risk(x).squeeze(-1))) - part).mean()
x, t = torch.randn(6, 3), torch.rand(6) + 0.1
"""
LOOP = """model = Survival()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = model.nll(x, t)
    loss.backward()
    optimizer.step()
"""


def fixed(line: str, decorator: str = "@property", call: str = "", loop: str = LOOP) -> str:
    """The cells with the fix for the parameter that gets no gradient."""
    cells = MODEL.format(line=line, decorator=decorator, call=call), loop
    (finding,) = (one for one in with_lineage(*cells) if one.severity == "warning")
    (fix,) = finding.fixes
    assert finding.tensor == "model.log_shape"
    return "".join(text_edit.apply(text, [e for e in fix.edits if e.cell == n]) for n, text in enumerate(cells, 1))


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("part = torch.log(torch.tensor(k)) + (k - 1) * t.log()", "part = torch.log(k) + (k - 1) * t.log()"),
        ("part = math.log(k) + t.log()", "part = torch.log(k) + t.log()"),
        ("part = np.log(k) + t.log()", "part = torch.log(k) + t.log()"),
        ("part = torch.full((6,), k) * t", "part = k * torch.ones((6,)) * t"),
        ("part = torch.full_like(t, k)", "part = k * torch.ones_like(t)"),
        ("part = torch.tensor([k, 1.0]).sum() * t", "part = torch.stack([k, torch.as_tensor(1.0)]).sum() * t"),
        ("part = math.log(max(k, 0.1)) * t", "part = torch.log(max(k, 0.1)) * t"),
    ],
)
def test_each_line_that_made_something_else_of_the_number_keeps_its_graph(line: str, new: str) -> None:
    for decorator, call in (("@property", ""), ("", "()")):
        cell = fixed(line, decorator, call).replace("torch.as_tensor(k)", "k")  # which is the tensor itself
        assert "return self.log_shape.exp()\n" in cell and f"        {new}\n" in cell
        names: dict[str, object] = {}
        exec(f"import torch\nfrom torch import nn\ntorch.manual_seed(0)\n{cell}", names)
        model = names["model"]
        k = torch_gradient(model, names)  # of the whole loss
        assert model.log_shape.grad.item() == pytest.approx(k, rel=1e-3)  # type: ignore[attr-defined]


def torch_gradient(model, names) -> float:
    """The slope of the loss in the parameter, by differences."""
    loss = model.nll(names["x"], names["t"])
    model.zero_grad()
    loss.backward()
    values = []
    before = model.log_shape.item()
    for step in (1e-2, -1e-2):
        model.log_shape.data.fill_(before + step)
        values.append(model.nll(names["x"], names["t"]).item())
    model.log_shape.data.fill_(before)
    return (values[0] - values[1]) / 2e-2


def test_a_number_that_is_only_shown_needs_no_tensor() -> None:
    loop = LOOP + "print(math.log(model.shape), f'{model.shape:.2f}')\n"
    cell = fixed("part = t", loop=loop)
    assert "print(math.log(model.shape)" in cell and "return self.log_shape.exp()\n" in cell


def test_plain_arithmetic_with_the_number_stays_as_it_is_written() -> None:
    cell = fixed("part = torch.log(torch.tensor(k)) * t\n        part = part + (k - 1) * t.log()")
    assert "part = torch.log(k) * t\n        part = part + (k - 1) * t.log()\n" in cell


def test_lines_that_pack_it_and_lines_that_do_not_are_written_together() -> None:
    cell = fixed("part = torch.log(torch.tensor(k)) * t\n        part = part + math.exp(k) * t", "", "()")
    assert "part = torch.log(k) * t\n        part = part + torch.exp(k) * t\n" in cell


def test_a_value_that_is_kept_for_a_plot_stays_a_number() -> None:
    line = "part = torch.log(torch.tensor(k)) * t\n        seen.append(k)"
    assert "seen.append(k.item())" in fixed(line, loop="seen = []\n" + LOOP)


def test_a_shape_of_data_is_not_the_property_of_that_name() -> None:
    cell = fixed("part = torch.log(torch.tensor(k)) * torch.tensor(t.shape[0])")
    assert "part = torch.log(k) * torch.tensor(t.shape[0])\n" in cell


@pytest.mark.parametrize(
    ("line", "by", "used", "told"),
    [
        ("a = math.log(w)", "__float__", None, True),  # where a number goes the text says
        ("n = math.log(w)", "__float__", None, False),
        ("a = torch.tensor(w)", "tensor", True, True),
        ("a = torch.tensor(w)", "tensor", False, False),  # measured to go nowhere
        ("a = w.detach()", "detach", True, False),  # as it is written
        ("a = w > 0", "gt", True, False),
    ],
)
def test_lines_that_take_numbers_for_a_loss_are_told_from_others(
    line: str, by: str, used: bool | None, told: bool
) -> None:
    record = record_of(f"import math\nw, a = torch.ones((), requires_grad=True), 1\n{line}\n(w * a).backward()")
    cut = MeasuredCut((TextLine(1, None, 3),), by, True, ("w",), used=used)
    assert made_numbers(record) is None
    assert made_numbers(replace(record, lineage=Lineage(None, cuts=(cut,)))) == ({f"`{line}`": ("w",)} if told else {})
