"""Gradients of what does not require grad."""

from told import findings_of


def test_the_line_that_computes_what_it_derives_lets_its_input_require_grad():
    cell = "net = nn.Linear(1, 1)\ndef force(q):\n    (g,) = torch.autograd.grad(net(q).sum(), q)\n    return -g\nforce(torch.ones(2, 1))"
    (found,) = findings_of(cell)
    assert found.cause is not None and found.cause.line == 3
    assert [edit.new.strip() for edit in found.fixes[0].edits] == ["q.requires_grad_()"]
    assert found.fixes[0].edits[0].start[0] == 3
