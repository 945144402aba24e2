"""A loop that leaves parameters trainable by names that no parameter of the model has."""

from __future__ import annotations

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4))
        self.classifier = nn.Linear(4, 2)
    def forward(self, x):
        return self.classifier(self.body(x))
net = Net()
for name, p in net.named_parameters():
    {freezing}
"""
TRAIN = """opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(2, 3)).pow(2).mean().backward()
"""
LIST = "if name not in ['fc.weight', 'fc.bias']: p.requires_grad = False"
FORMS = [
    (LIST, '["classifier.weight", "classifier.bias"]'.replace("[", "").replace("]", "")),
    ("if not name.startswith('fc'): p.requires_grad_(False)", 'startswith("classifier")'),
    ("if not name.startswith(('fc.', 'head.')): p.requires_grad_(False)", '("classifier.", "classifier.")'),
    ("if 'fc' in name: continue\n    p.requires_grad = False", 'if "classifier" in name'),
    ("if 'fc' in name or name == 'head.bias': pass\n    else: p.requires_grad = False", '"classifier" in name'),
    ("p.requires_grad = any(key in name.lower() for key in ('fc', 'head'))", '("classifier", "classifier")'),
]


@pytest.mark.parametrize("freezing, new", FORMS)
def test_the_last_module_is_left_trainable_by_the_name_that_it_has(freezing: str, new: str) -> None:
    setup = NET.format(freezing=freezing)
    (found,) = findings_of(setup, TRAIN)
    fix = found.fixes[0]
    assert "Its last parameters are `classifier.weight` and `classifier.bias`" in found.text and fix.id == "unfreeze"
    fixed = apply(setup, fix.edits)
    assert new in fixed and not findings_of(fixed, TRAIN, "assert net.body[0].weight.grad is None")


@pytest.mark.parametrize(
    "freezing",
    [
        "p.requires_grad = False",
        "if name not in KEPT: p.requires_grad = False",  # what the text does not show
        "if p.ndim > 5 or name: p.requires_grad = False",
        "if name.startswith('body') or 'classifier' in name: p.requires_grad = False",  # it means all of them
    ],
)
def test_other_lines_are_only_told_to_freeze(freezing: str) -> None:
    (found,) = findings_of("KEPT = ('fc',)\n" + NET.format(freezing=freezing), TRAIN)
    assert "by name" not in found.text and "classifier" not in "".join(one.text for one in found.fixes)
