"""Parameters that an optimizer was made to train, and that something else has frozen on its way."""

import pytest
from told import with_lineage

from graphwidget.model import Finding

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.position = nn.Parameter(torch.randn(6), requires_grad=False)
        self.backbone, self.neck, self.head = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 2)
    def forward(self, x):
        return self.head(self.neck(self.backbone(x + self.position)))
net = Net()
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 1e-2)
"""
TRAIN = """
{first}
for step in range(8):
    {before}
    loss = net(torch.randn(16, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {behind}
"""


def told(define: str, first: str = "pass", before: str = "pass", behind: str = "pass", net: str = NET) -> list[Finding]:
    found = with_lineage(net, define, TRAIN.format(first=first, before=before, behind=behind))
    return [one for one in found if one.severity != "info"]


EVALUATE = """
def evaluate(net):
    for p in net.backbone.parameters():
        p.requires_grad_(False)
    return net(torch.randn(4, 6)).mean().item()
"""


@pytest.mark.parametrize(("first", "behind"), [("evaluate(net)", "pass"), ("pass", "evaluate(net)")])
def test_what_an_evaluation_has_frozen_is_told_with_its_line(first: str, behind: str) -> None:
    (found,) = told(EVALUATE, first, behind=behind)
    assert found.kind == "silent" and "net.backbone.weight" in found.names and "net.neck.weight" not in found.names
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 4)
    assert "`evaluate(net)`" in found.text and found.fixes[0].id == "restore_requires_grad"
    assert any("held.requires_grad_(True)" in line for line in found.fixes[0].edit)


def test_a_switch_for_adapters_is_told_where_it_is_switched_for_another_purpose() -> None:
    define = """
def activate(net, name, inference=False):
    net.active = name
    for part in ("backbone", "neck"):
        getattr(net, part).requires_grad_(not inference)
def save(net):
    activate(net, "initial", inference=True)
    return {k: v.clone() for k, v in net.state_dict().items()}
"""
    (found,) = told(define, "saved = save(net)")
    assert found.cause is not None and found.cause.line == 5
    assert "`saved = save(net)`" in found.text and "activate" not in found.fixes[0].text


ONLY_FREEZES = """
def warm_up(net):
    for p in net.backbone.parameters():
        p.requires_grad = False
"""
SCHEDULE = """
def on_step(net, step):
    net.step = step
    for p in net.backbone.parameters():
        p.requires_grad_(step < 4)
"""
AT_A_STEP = """
def on_step(net, step):
    net.step = step
    if step == 4:
        for p in net.backbone.parameters():
            p.requires_grad = False
"""
IN_TURN = """
def switch(net, part):
    net.part = part
    for name in ("backbone", "neck"):
        getattr(net, name).requires_grad_(name == part)
"""
PREPARE = """
def prepare(net):
    net.ready = True
    net.backbone.requires_grad_(False)
def set_requires_grad(part, flag):
    part.flag = flag
    part.requires_grad_(flag)
"""


@pytest.mark.parametrize(
    ("define", "first", "before", "behind"),
    [
        ("", "net.backbone.requires_grad_(False)", "pass", "pass"),
        (ONLY_FREEZES, "warm_up(net)", "pass", "pass"),
        (PREPARE, "set_requires_grad(net.backbone, False)", "pass", "pass"),
        (SCHEDULE, "pass", "on_step(net, step)", "pass"),
        (AT_A_STEP, "pass", "on_step(net, step)", "pass"),
        (IN_TURN, "pass", "switch(net, 'neck' if step % 2 else 'backbone')", "pass"),
        (EVALUATE, "pass", "pass", "evaluate(net); net.backbone.requires_grad_(True)"),
    ],
)
def test_freezing_that_is_meant_is_no_finding(define: str, first: str, before: str, behind: str) -> None:
    assert told(define, first, before, behind) == []


def test_an_optimizer_of_everything_says_nothing_of_what_is_to_train() -> None:
    whole = NET.replace("[p for p in net.parameters() if p.requires_grad]", "net.parameters()")
    assert told(PREPARE, "prepare(net)", net=whole) == []
    assert len(told(PREPARE, "prepare(net)")) == 1


def test_what_takes_part_no_more_is_not_missed() -> None:
    spare = NET.replace("self.neck(self.backbone(x + self.position))", "self.neck(x.repeat(1, 2)[:, :8])")
    assert told(PREPARE, "prepare(net)", net=spare) == []
