"""A trial ends soon behind the call that failed: what the program keeps then is no proof that it keeps it for good."""

import json

import prepared

META = """
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(3):
    total = 0
    for task in range(3):
        x = torch.randn(4, 2)
        fast = net.weight.detach() * 1
        for _ in range(4):
            loss = (F.linear(x, fast) - 1).pow(2).mean()
            (grad,) = torch.autograd.grad(loss, [fast])
            fast = fast - 0.1 * grad
            total = total + (F.linear(x, fast) - 1).pow(2).mean()
    opt.zero_grad()
    total.backward()
    opt.step()
"""


def test_losses_that_a_later_backward_needs_are_not_detached_because_the_trial_ended_before_it(tmp_path):
    (tmp_path / "train.py").write_text(META)
    done = prepared.run(
        "-m", "graphwidget", "explain", "--format", "json", "--try", "--try-seconds", "120", "train.py", cwd=tmp_path
    )
    (finding,) = json.loads(done.stdout)["findings"]
    first = finding["fixes"][0]
    assert first["tried"]["ok"] and "detach()" not in "".join(one for one in first["edit"] if one.startswith("+"))
    assert "pile" not in first["text"]
