"""Operations whose derivative is zero: the list is what PyTorch's own formulas say."""

import re
from pathlib import Path

import torch
from told import findings_of

from graphwidget.diagnosis.findings.silences import flat

TABLE = Path(torch.__file__).parents[1] / "torchgen" / "packaged" / "autograd" / "derivatives.yaml"
MEANT = {"fill"}  # its result has no input that could get a gradient


def test_each_operation_with_a_formula_of_zeros_is_known() -> None:
    zero = set()
    for entry in re.split(r"^- name: ", TABLE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        name = re.match(r"\w+", entry)
        formula = re.search(r"^  self: (.*)", entry, flags=re.M)
        if name is not None and formula is not None and re.fullmatch(r"zeros_like\(\w+\)", formula[1].strip()):
            zero.add(name[0])
    computing = {one for one in zero if not one.endswith(("_", "_backward"))} - MEANT
    assert computing and computing <= {name.lower() for name in (*flat._STEPWISE, *flat._DRAWN)}


MODEL = "net = nn.Sequential(nn.Linear(2, 5), nn.Linear(5, 1))\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
STEPS = """for _ in range(4):
    out = net(torch.ones(3, 2)).sigmoid().squeeze()
    loss = {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_a_model_that_got_zeros_is_still_told_when_another_one_is_trained_by_the_same_names() -> None:
    flat_steps = STEPS.format(loss="(torch.round(out) - 1).pow(2).sum()")
    again = MODEL.replace("net", "second") + STEPS.format(loss="(out - 1).pow(2).sum()").replace("net", "second")
    (found,) = findings_of(MODEL, flat_steps, again)
    assert set(found.names) - {"round"} == {"net[0].weight", "net[0].bias", "net[1].weight", "net[1].bias"}
    assert found.made_at is not None and found.made_at.cell == 2
