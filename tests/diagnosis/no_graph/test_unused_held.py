"""A loss that was computed beside all that the optimizer holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from told import record_of

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.model import Finding, IdleModule, Lineage, MeasuredIdle, TextLine

NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(4, 3), nn.Linear(3, 5)
    def forward(self, x):
        return self.fc(self.body(x))"""
BUILD = """net = Net()
for p in net.parameters():
    p.requires_grad = False
net.head = nn.Linear(3, 2)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.head.parameters(), 0.1)"""
STEP = """loss = criterion(net(torch.ones(2, 4)), torch.tensor([0, 1]))
opt.zero_grad()
loss.backward()"""
HEAD = ("net.head.weight", "net.head.bias")


def found(build: str = BUILD, instead: str = "fc", modules: bool = True) -> Finding:
    record = record_of(NET, build, STEP)
    (call,) = (one.n for one in record.calls if one.result == "raised")
    held = (IdleModule("net.head", instead),) if modules else ()
    idle = MeasuredIdle(HEAD, 2, held, ("net.body.weight", "net.fc.bias"), (TextLine(2, None, 3),))
    told = diagnose(replace(record, lineage=Lineage(call, idle=idle)))
    (finding,) = (one for one in told if one.kind == "no_grad")
    return finding


def test_what_is_held_and_what_was_frozen_are_named_with_the_line() -> None:
    finding = found()
    assert "holds the parameters of `net.head`, which was never called" in finding.text
    assert "`net.fc.bias` and `net.body.weight`, is frozen: `p.requires_grad = False` (In[2], line 3)" in finding.text
    assert "criterion" not in finding.text and finding.made_at is not None and finding.made_at.line == 3
    assert "holds `net.head.weight` and `net.head.bias`, which were never used" in found(modules=False).text


def test_the_new_head_takes_the_name_that_is_called() -> None:
    (fix,) = found().fixes
    assert fix.id == "use_the_new_head" and [one for one in fix.edit if one.startswith("+")] == [
        "+ net.fc = nn.Linear(3, 2)",
        "+ opt = torch.optim.SGD(net.fc.parameters(), 0.1)",
    ]


@pytest.mark.parametrize(
    ("build", "instead"),
    [
        (BUILD, ""),
        (
            BUILD.replace("criterion =", "kept = [n for n, _ in net.named_parameters() if 'head' in n]\ncriterion ="),
            "fc",
        ),
        (BUILD + "\nclass Other(nn.Module):\n    def forward(self, x):\n        return self.head(x)", "fc"),
        (BUILD + "\nnet.head = nn.Linear(3, 2)", "fc"),
    ],
    ids=["it takes something else", "a text names it", "a class reads it", "set twice"],
)
def test_in_doubt_there_is_no_edit(build: str, instead: str) -> None:
    (fix,) = found(build, instead).fixes
    assert not fix.edits and "Use `net.head` where `loss` is computed" in fix.text


def test_without_a_measurement_a_loss_without_parameters_is_not_named_either() -> None:
    train = """def train(net, batches, criterion, opt):
    for x, y in batches:
        opt.zero_grad()
        with torch.set_grad_enabled(True):
            out = net(x)
            loss = criterion(out, y)
            loss.backward()"""
    batches = "batches = [(torch.ones(2, 4), torch.tensor([0, 1]))]"
    told = diagnose(record_of(NET, BUILD, batches, train, "train(net, batches, criterion, opt)"))
    (finding,) = (one for one in told if one.kind == "no_grad")
    assert "criterion" not in finding.text and "parameters that require grad" in finding.text
