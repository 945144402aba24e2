"""A program that is all in `main` is explained as one whose lines stand in no function."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source import syntax as source

IN_MAIN = "def main():\n{body}\n\n\nif __name__ == '__main__':\n    main()\n"


def in_main(text):
    return IN_MAIN.format(body="\n".join(f"    {line}" if line else "" for line in text.strip().splitlines()))


LABELS = """
x = torch.randn(20, 2)
truth = torch.randn(2, 1, requires_grad=True)
y = torch.sigmoid(x @ truth)
w = torch.zeros(2, 1, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for it in range(3):
    loss = (torch.sigmoid(x @ w) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
HOOKED = """
class Kept:
    def __init__(self, module):
        module.register_forward_hook(self.keep)
    def keep(self, module, given, out):
        self.out = out
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh())
net.requires_grad_(False)
kept = [Kept(net[1]), Kept(net[3])]
image, style = nn.Parameter(torch.rand(2, 3)), torch.rand(2, 3)
image.data.copy_(style)
net(image)
wanted = [one.out.clone() for one in kept]
image.data.fill_(0.5)
opt = torch.optim.SGD([image], lr=0.1)
def loss_of(given):
    net(given)
    return sum((one.out - other).pow(2).sum() for one, other in zip(kept, wanted))
for it in range(2):
    loss = loss_of(image)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
NO_GRAPH = """
x = torch.randn(3, requires_grad=True)
with torch.no_grad():
    score = (x * 2).sum()
loss = 1 - score
torch.autograd.grad(loss.requires_grad_(True), [x])
"""
STARTED = "import torch\nfrom torch import nn\n"


def first(finding):
    fix = finding.fixes[0]
    return (fix.id, [(edit.start[0], edit.new.strip()) for edit in fix.edits])


@pytest.mark.parametrize("text", [LABELS, HOOKED, NO_GRAPH], ids=["labels", "hooked", "no graph"])
def test_the_same_fix_at_the_same_lines(text):
    plain = findings_of(STARTED + "if True:\n" + "\n".join(f"    {line}" for line in text.strip().splitlines()))
    inside = findings_of(STARTED + in_main(text))
    assert [(one.kind, first(one)) for one in inside] == [(one.kind, first(one)) for one in plain]
    assert first(inside[0])[1]


@pytest.mark.parametrize(
    "text",
    [
        "def main():\n    x = 1\nmain()\nmain()\n",
        "def main(n):\n    x = n\nmain(3)\n",
        "def main():\n    x = 1\nfor i in range(3):\n    main()\n",
        "@torch.no_grad()\ndef main():\n    x = 1\nmain()\n",
        "def main():\n    yield 1\nmain()\n",
        "def main():\n    x = 1\ndef other():\n    y = 1\nmain()\nother()\n",
        "def main():\n    x = 1\n",
    ],
)
def test_a_function_that_is_not_all_of_the_program(text):
    assert source.main_function(text) is None


@pytest.mark.parametrize("call", ["main()", "result = main()", "import sys\nsys.exit(main())"])
def test_its_lines_are_those_of_the_program(call):
    text = f"def main():\n    x = 1\n    for i in range(2):\n        y = x\n{call}\n"
    assert source.main_function(text) is not None
    assert source.function_at(text, 2) is None
    assert source.qualified_name_at(text, 2) == "main"
    assert source.loop_at(text, 4).lineno == 3
