"""What a Function saves that is no tensor is kept as an attribute of its context."""

from __future__ import annotations

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

SCALE = """class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, {arguments}):
        ctx.save_for_backward({saved})
        return x * k
    @staticmethod
    def backward(c, g):
        {taken} = c.saved_tensors
        return {back}
w = torch.ones(3, requires_grad=True)
class Layer:
    k = 4
"""


@pytest.mark.parametrize(
    "arguments, saved, taken, back, given",
    [
        ("k", "x, k", "x, factor", "g * factor, None", "4"),
        ("k, m", "k, x, m", "k, x, m", "g * k, None, None", "4, torch.ones(3)"),
    ],
)
def test_the_number_goes_by_the_context(arguments: str, saved: str, taken: str, back: str, given: str) -> None:
    setup = SCALE.format(arguments=arguments, saved=saved, taken=taken, back=back)
    run = f"Scale.apply(w, {given}).sum().backward()"
    (found,) = findings_of(setup, run)
    assert "saves `k`, an int, as if it were a tensor" in found.text or "`k`, an int" in found.headline
    fixed = apply(setup, found.fixes[0].edits)
    assert "ctx.k = k" in fixed and "= c.k" in fixed
    assert not findings_of(fixed, run, "assert w.grad.tolist() == [4.0] * 3")


def test_a_backward_that_reads_it_in_another_way_has_advice_only() -> None:
    setup = SCALE.format(arguments="k", saved="x, k", taken="saved", back="g * saved[1], None")
    (found,) = findings_of(setup, "Scale.apply(w, 4).sum().backward()")
    assert "Keep it as an attribute" in found.fixes[0].text and not found.fixes[0].edits
