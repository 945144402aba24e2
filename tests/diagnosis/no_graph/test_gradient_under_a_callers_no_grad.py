"""A function that computes a gradient of its own, and whose caller has switched grad mode off."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

GUIDE = """judge = nn.Linear(2, 1)
def guide(x):
    x_in = x.detach().requires_grad_()
    score = judge(x_in).exp().sum()
    return torch.autograd.grad(score, x_in)[0]"""
SAMPLE = """@torch.no_grad()
def sample(x):
    return x + guide(x)
out = sample(torch.ones(3, 2))"""
MOVED = "    with torch.enable_grad():\n        x_in = x.detach().requires_grad_()\n        score ="


@pytest.mark.parametrize("sample", [SAMPLE, "with torch.no_grad():\n    out = guide(torch.ones(3, 2))"])
def test_what_leads_to_its_gradient_is_computed_with_a_graph(sample: str) -> None:
    (found,) = findings_of(GUIDE, sample)
    assert "Grad mode is off where" in found.text
    fixed = text_edit.apply(GUIDE, found.fixes[0].edits)
    assert MOVED in fixed and not findings_of(fixed, sample)


def test_without_a_leaf_of_its_own_the_call_is_taken_out() -> None:
    guide = "judge = nn.Linear(2, 1)\ndef guide(x):\n    score = judge(x).sum()\n    return torch.autograd.grad(score, x)[0]"
    (found,) = findings_of(guide, SAMPLE.replace("torch.ones(3, 2)", "torch.ones(3, 2, requires_grad=True)"))
    assert [edit.cell for edit in found.fixes[0].edits] == [2]
