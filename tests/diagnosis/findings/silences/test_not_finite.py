"""Parameters that hold nan, what made the first one, and programs of which nothing is said."""

from dataclasses import replace

import pytest
from told import findings_of, record_of, said

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.model import Finding, Lineage, MeasuredNonFinite, TextLine

MADE = (
    "net = nn.Linear(3, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "x, t = torch.randn(8, 3), torch.rand(8, 2)\nx[0] = 0\nnet.bias.data.zero_()"
)
LOOP = "for step in range(4):\n    opt.zero_grad()\n    d = net(x).pow(2).sum(1).sqrt()\n    loss = d.sum()\n    loss.backward()\n    "


def test_without_a_measurement_it_is_told_that_it_is_there_and_how_to_find_it() -> None:
    (found,) = findings_of(MADE, LOOP + "opt.step()")
    assert (found.kind, found.severity, found.headline) == ("silent", "warning", "Parameters hold nan.")
    assert (
        "`net.weight` and `net.bias` hold nan after 4 steps" in found.text
        and "`opt.step()` (In[2], line 6)" in found.text
    )
    assert "`graphwidget.find_nan(loss)`" in found.fixes[0].text


def measured(cell: str, **facts: object) -> Finding:
    lines = {"made": (TextLine(2, None, 3),), "stepped": (TextLine(2, None, 6),)}
    nonfinite = MeasuredNonFinite("nan", ("net.weight",), 1, **{"call": 0, "what": "nan", **lines, **facts})  # type: ignore[arg-type]
    record = replace(record_of(MADE, cell), lineage=Lineage(None, nonfinite=nonfinite))
    (found,) = diagnose(record)
    return found


@pytest.mark.parametrize(
    ("line", "by", "written"),
    [
        ("net(x).pow(2).sum(1).sqrt()", "SqrtBackward0", "net(x).pow(2).sum(1).clamp(min=1e-12)"),
        ("torch.sqrt(net(x).pow(2).sum(1) * 2)", "SqrtBackward0", "(net(x).pow(2).sum(1) * 2).clamp(min=1e-12)"),
        ("net(x).pow(2).sum(1) ** 0.5", "PowBackward0", ""),
        ("net(x).pow(2).sum(1).sqrt() * net(x).pow(2).sum(1).sqrt()", "SqrtBackward0", ""),
    ],
)
def test_the_argument_of_a_root_is_kept_away_from_zero(line: str, by: str, written: str) -> None:
    cell = LOOP.replace("net(x).pow(2).sum(1).sqrt()", line) + "opt.step()"
    found = measured(cell, stage="backward", by=by, held="`result` 0")
    assert found.headline.startswith("Parameters become nan: that begins at")
    assert "`loss`, which was finite" in found.text and "where it had saved `result` 0" in found.text
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 3)
    assert [edit.new for edit in found.fixes[0].edits] == [written] * bool(written)


STAGES = {
    "forward": (
        {"by": "mul", "behind": "log", "behind_made": (TextLine(1, None, 2),)},
        "(the logarithm is infinite at 0)",
    ),
    "written": ({"by": "__setitem__"}, "brought it in"),
    "given": ({"made": ()}, "no operation made that"),
    "step": ({"call": None, "made": ()}, "the step itself made it"),
    "": ({"call": None, "made": ()}, "which operation made them so is not known"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_what_made_the_first_value(stage: str) -> None:
    facts, text = STAGES[stage]
    found = measured(LOOP + "opt.step()", stage=stage, **facts)
    assert text in found.text and found.fixes[0].id == "finite_gradient"
    assert "`opt.step()` (In[2], line 6) wrote nan into `net.weight`: it was step 1" in found.text


NOTHING_TO_SAY = {
    "steps are skipped": LOOP + "if all(p.grad.isfinite().all() for p in net.parameters()):\n        opt.step()",
    "a test leaves the loop": LOOP + "opt.step()\n    if torch.isnan(net.weight).any():\n        break",
    "gradients are mended": LOOP + "for p in net.parameters():\n        p.grad.nan_to_num_(0)\n    opt.step()",
    "the weights are restored": "before = {k: v.clone() for k, v in net.state_dict().items()}\n"
    + LOOP
    + "opt.step()\n    net.load_state_dict(before)",
    "infinite on purpose": (
        "b = nn.Parameter(torch.tensor([0.0, -float('inf')]))\nopt = torch.optim.SGD([*net.parameters(), b], lr=0.1)\n"
        "for step in range(4):\n    opt.zero_grad()\n    loss = -(net(x) + b).log_softmax(1)[:, 0].sum()\n"
        "    loss.backward()\n    opt.step()"
    ),
}


@pytest.mark.parametrize("name", NOTHING_TO_SAY)
def test_what_is_handled_is_left_alone(name: str) -> None:
    assert said(MADE, NOTHING_TO_SAY[name]) == []
