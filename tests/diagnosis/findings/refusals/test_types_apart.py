"""A backward that refuses tensors of two types: which one is out of place, and the line that made it."""

from __future__ import annotations

import pytest
from told import findings_of

from graphwidget.model import Finding

NET = "import numpy as np\nimport torch.nn.functional as F\nnet = nn.Linear(3, 1)\nx = torch.ones(4, 3)"
LOSS = "loss = F.huber_loss(net(x), {target})\nloss.backward()"


def refused(*cells: str) -> Finding:
    (found,) = (one for one in findings_of(NET, *cells) if one.severity == "error")
    assert found.kind == "refused" and not found.unexplained
    return found


@pytest.mark.parametrize(
    ("made", "new"),
    [
        ("t = torch.tensor(np.ones((4, 1)))", "t = torch.tensor(np.ones((4, 1))).float()"),
        ("t = torch.from_numpy(np.ones(4)).view(-1, 1)", "t = torch.from_numpy(np.ones(4)).view(-1, 1).float()"),
        ("t = torch.ones(4, 1).double()", "t = torch.ones(4, 1).float()"),
        ("t = torch.ones(4, 1, dtype=torch.float64)", "t = torch.ones(4, 1, dtype=torch.float32)"),
        ("t = torch.ones(4, 1).to(torch.double) * 2", "t = torch.ones(4, 1).to(torch.double).float() * 2"),
        ("t = torch.ones(4, 1).half()", "t = torch.ones(4, 1).float()"),
        (
            "t = torch.as_tensor([np.float64(1)] * 4)[:, None]",
            "t = torch.as_tensor([np.float64(1)] * 4)[:, None].float()",
        ),
    ],
)
def test_the_line_that_made_the_other_type_is_named_and_mended(made: str, new: str) -> None:
    found = refused(made, LOSS.format(target="t"))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 1)
    assert found.names[:1] == ("t",) and "comes from" in found.text
    assert [fix.edit for fix in found.fixes] == [
        (f"- {made}", f"+ {new}"),
        ("- loss = F.huber_loss(net(x), t)", "+ loss = F.huber_loss(net(x), t.float())"),
    ]


def test_it_is_followed_through_variables_tuples_and_functions() -> None:
    data = (
        "def read(n):\n    rain = torch.tensor(np.ones(n))\n    wind = torch.tensor(np.ones((4, 3))).float()\n"
        "    return wind, rain\nwind, rain = read(4)"
    )
    fit = "target = rain[:, None] * 2 + x[:, :1]\nloss = F.huber_loss(net(wind), target.detach())\nloss.backward()"
    found = refused(data, fit)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 2)
    assert found.names == ("target", "rain") and "by way of `target` and `rain`" in found.text
    assert "NumPy's numbers are float64" in found.text


def test_of_two_lines_that_may_have_made_it_none_is_named() -> None:
    lines = "a = torch.tensor(np.ones((4, 1)))\nb = torch.tensor(np.ones((4, 1)))\nt = a + b"
    found = refused(lines, LOSS.format(target="t"))
    assert "from" not in found.text and [fix.edit[1] for fix in found.fixes] == [
        "+ loss = F.huber_loss(net(x), t.float())"
    ]


def test_numbers_under_another_default_type() -> None:
    cells = (
        "torch.set_default_dtype(torch.float64)\nt = torch.tensor([[1.0]] * 4)\ntorch.set_default_dtype(torch.float32)"
    )
    found = refused(cells, LOSS.format(target="t"))
    assert found.fixes[0].edit == ("- t = torch.tensor([[1.0]] * 4)", "+ t = torch.tensor([[1.0]] * 4).float()")
    assert "NumPy" not in found.text


def test_a_helper_s_argument_is_that_of_its_caller() -> None:
    helper = "def misfit(out, want):\n    return F.huber_loss(out, want)\nwant = torch.from_numpy(np.ones((4, 1)))"
    found = refused(helper, "loss = misfit(net(x), want)\nloss.backward()")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 3)
