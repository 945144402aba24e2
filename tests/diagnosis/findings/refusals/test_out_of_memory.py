"""Calls for which there was no memory."""

from told import findings_of

START = "w = torch.ones(1, requires_grad=True)\nvast = w.expand(2**45)"  # its gradient would take 128 TiB


def test_without_other_graphs_the_call_and_what_it_holds_are_told() -> None:
    (found,) = findings_of(START, "loss = vast[3].exp()\nloss.backward()")
    assert found.headline == "① ran out of memory." and found.kind == "refused" and not found.unexplained
    assert found.failed_at is not None and (found.failed_at.cell, found.failed_at.line) == (2, 2)
    assert [fix.id for fix in found.fixes] == ["save_less"] and found.bytes == 4


def test_graphs_that_pile_up_are_named_and_their_finding_has_the_fix() -> None:
    loop = "kept = []\nfor i in range(5):\n    loss = w.exp().sum()\n    loss.backward()\n    kept.append(loss)\nvast[3].backward()"
    first, second = findings_of(START, loop)
    assert "`kept`" in first.text and not first.fixes
    assert second.kind == "leak" and second.carriers == first.carriers
