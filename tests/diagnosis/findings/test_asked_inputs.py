"""Gradients of what does not require grad."""

from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply


def test_the_line_that_computes_what_it_derives_lets_its_input_require_grad():
    cell = "net = nn.Linear(1, 1)\ndef force(q):\n    (g,) = torch.autograd.grad(net(q).sum(), q)\n    return -g\nforce(torch.ones(2, 1))"
    (found,) = findings_of(cell)
    assert found.cause is not None and found.cause.line == 3
    assert [edit.new.strip() for edit in found.fixes[0].edits] == ["q.requires_grad_()"]
    assert found.fixes[0].edits[0].start[0] == 3


def test_of_many_that_no_variable_leads_to_it_is_told_how_many_are_frozen():
    cell = """net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
net[0].requires_grad_(False)
class Grads:
    def __init__(self):
        self.of = [p for p in net.parameters()]
    def ask(self, loss):
        return torch.autograd.grad(loss, self.of)
Grads().ask(net(torch.ones(3)).sum())"""
    (found,) = findings_of(cell)
    assert found.headline == "2 of 4 tensors whose gradients were asked for do not require grad."
    assert "`net[0].requires_grad_(False)` (In[1], line 2) freezes" in found.text
    fixed = apply(cell, found.fixes[0].edits)
    assert "self.of = [p for p in net.parameters() if p.requires_grad]" in fixed and not findings_of(fixed)
