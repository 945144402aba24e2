"""A model that an evaluation leaves in evaluation mode: what then has no graph, or runs otherwise in a checkpoint."""

import pytest
from told import findings_of

MODEL = (
    "from torch.utils.checkpoint import checkpoint\n"
    "class Net(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.body = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Dropout(0.5))\n"
    "        self.head = nn.Linear(8, 1)\n"
    "    def forward(self, x):\n"
    "        {forward}\n"
    "net = Net()\nx = torch.randn(4, 3)\n"
)
BY_MODE = "with torch.set_grad_enabled(self.training):\n            return self.head(self.body(x))"
CHECKPOINT = "return self.head(checkpoint({body}, x, use_reentrant=False))"
BODIES = ("self.body", "lambda x: self.body(x)", "self.body.forward")
EVALUATE = "def evaluate(net):\n    net.eval()\n    {check}"
CHECKS = {
    "errors = [net(x).abs().mean().item()]\n    return sum(errors) / len(errors)": True,
    "with torch.no_grad():\n        print(net(x).mean().item())": True,
    "value = net(x).mean().item()\n    return": True,
    "return net(x).mean().item()": False,  # the mode would be put back too early
    "for i in range(2):\n        if i:\n            return i": False,
}
FIRST = "net(x).sum().backward()\nevaluate(net)\nnet(x).sum().backward()"
BETWEEN = "for step in range(2):\n    loss = net(x).sum()\n    if step:\n        evaluate(net)\n    loss.backward()"


@pytest.mark.parametrize("check", CHECKS)
def test_what_has_no_graph_by_the_mode_names_the_line_that_left_it(check: str) -> None:
    (found,) = findings_of(MODEL.format(forward=BY_MODE), EVALUATE.format(check=check), FIRST)
    assert found.kind == "no_grad" and "ran under `torch.set_grad_enabled(self.training)`" in found.text
    put_back = found.fixes[0].id == "training_mode"
    assert put_back is CHECKS[check]
    if put_back:
        assert "`self.training` is false since `net.eval()` (In[2], line 2)" in found.text
        new = [line[2:].strip() for line in found.fixes[0].edit if line.startswith("+")]
        assert new == ["was_training = net.training", "net.train(was_training)"]


def test_what_is_put_back_by_the_function_itself_is_not_blamed() -> None:
    check = "net(x)\n    net.train()"
    (found,) = findings_of(MODEL.format(forward=BY_MODE), EVALUATE.format(check=check), "net.eval()\n" + FIRST)
    assert [fix.id for fix in found.fixes][:1] == ["remove_no_grad"]


@pytest.mark.parametrize("body", BODIES)
def test_a_checkpoint_that_runs_again_in_another_mode_is_told(body: str) -> None:
    check = "with torch.no_grad():\n        print(net(x).mean().item())"
    made = MODEL.format(forward=CHECKPOINT.format(body=body))
    (found,) = findings_of(made, EVALUATE.format(check=check), BETWEEN)
    assert "`net.body[2]`, a `Dropout`, was in training mode then, and is in evaluation mode now" in found.text
    assert "`net.eval()` (In[2], line 2)" in found.text and "net.body[2]" in found.names
    assert found.fixes[0].id == "training_mode" and len(found.fixes[0].edits) == 2


def test_the_mode_is_not_blamed_where_it_was_the_same() -> None:
    forward = (
        "self.kept = getattr(self, 'kept', [])\n"
        "        def run(x):\n"
        "            self.kept.append(1)\n"
        "            return self.body(x if len(self.kept) % 2 else x[:2])\n"
        "        return self.head(checkpoint(run, x, use_reentrant=False))"
    )
    made = MODEL.format(forward=forward).replace("nn.Dropout(0.5)", "nn.BatchNorm1d(8)")
    (found,) = findings_of(made, "net.eval()", "net(x).sum().backward()")
    assert "mode" not in found.text and "`self.kept`" in found.text
