"""Groups of optimizers whose parameters a generator gave to an earlier optimizer."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

NETS = "base, head = nn.Linear(3, 3), nn.Linear(3, 1)\nx = torch.ones(2, 3)"
CHOSEN = "chosen = filter(lambda p: p.dim() > 1, base.parameters())"
PHASES = """
for phase in range(2):
    groups = [{"params": chosen, "lr": 0.1}, {"params": head.parameters()}]
    opt = torch.optim.SGD(groups, lr=0.1 / (phase + 1))
    for _ in range(2):
        opt.zero_grad()
        head(base(x)).pow(2).sum().backward()
        opt.step()
"""


def emptied(findings):
    return [one for one in findings if "the group is empty" in one.headline]


def test_a_filter_that_the_first_optimizer_has_used_up():
    (found,) = emptied(findings_of(NETS, CHOSEN, PHASES))
    assert "`base.weight`" in found.headline and found.cause.cell == 2
    fixed = text_edit.apply(CHOSEN, found.fixes[0].edits)
    assert fixed == "chosen = list(filter(lambda p: p.dim() > 1, base.parameters()))"
    assert not emptied(findings_of(NETS, fixed, PHASES))


@pytest.mark.parametrize(
    "chosen",
    [
        "chosen = [p for p in base.parameters() if p.dim() > 1]",
        "chosen = [p for p in base.parameters() if p.dim() > 3]",  # empty from the beginning
    ],
)
def test_a_list_is_no_matter(chosen):
    assert not emptied(findings_of(NETS, chosen, PHASES))


def test_the_empty_group_of_another_model_is_no_matter():
    cell = """
for bias in (True, False):
    net = nn.Linear(3, 1, bias=bias)
    groups = [{"params": [net.weight]}, {"params": [p for p in net.parameters() if p.dim() == 1], "lr": 0.2}]
    opt = torch.optim.SGD(groups, lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()
"""
    assert not emptied(findings_of(NETS, cell))
