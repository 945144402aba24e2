"""Roots that are complex: a real part, or a size."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

START = """H = torch.tensor([[1, 1j], [-1j, 2]])
phi = torch.tensor([1, 1j])
th = torch.rand(2, requires_grad=True)
psi = torch.complex(th, th.flip(0))"""


@pytest.mark.parametrize(
    ("loss", "fixed"),
    [
        ("torch.vdot(psi, H @ psi)", "torch.vdot(psi, H @ psi).real"),
        ("psi.conj() @ H @ psi", "(psi.conj() @ H @ psi).real"),
        ("0.5 * (psi.conj() * psi).sum()", "0.5 * (psi.conj() * psi).sum().real"),
        ("torch.trace(torch.outer(psi, phi) @ H)", "torch.trace(torch.outer(psi, phi) @ H).real"),
        ("1 - torch.vdot(phi, psi)", "1 - torch.vdot(phi, psi).abs() ** 2"),
        ("-(phi.conj() * psi).sum()", "-(phi.conj() * psi).sum().abs() ** 2"),
        ("((H @ psi - phi) ** 2).mean()", "((H @ psi - phi) ** 2).abs().mean()"),
        ("torch.mean((H @ psi - phi) ** 2)", "torch.mean(((H @ psi - phi) ** 2).abs())"),
    ],
)
def test_the_first_way_is_the_one_that_the_text_means(loss, fixed):
    for made, call in ((f"loss = {loss}", "loss.backward()"), ("pass", f"({loss}).backward()")):
        cell = f"{START}\n{made}\n{call}"
        (found,) = findings_of(cell)
        fix = found.fixes[0]
        assert "is complex" in found.headline and fix.choice and not fix.verified
        assert fixed in apply(cell, fix.edits) and not findings_of(apply(cell, fix.edits))


def test_a_name_means_what_it_was_computed_by():
    cell = "def cost(a, b):\n    overlap = torch.vdot(a, b)\n    return 1 - overlap\ncost(phi, psi).backward()"
    found = findings_of(START, cell.replace("cost(phi, psi).backward()", "loss = cost(phi, psi)\nloss.backward()"))[0]
    assert "(In[2], line 3) made it" in found.text
    assert [edit.new for edit in found.fixes[0].edits] == [".abs() ** 2"]
    assert [edit.new for edit in found.fixes[1].edits] == [".real"]
