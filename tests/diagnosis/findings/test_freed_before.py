"""A graph that a call has run of which nothing is known: before tracking began."""

import pytest
import torch
from told import findings_of


@pytest.mark.parametrize(
    "cell, said",
    [
        ("(h * 2).sum().backward()", "Compute `h` again before this call, or cut the graph behind it, `h.detach()`,"),
        ("h.sum().backward()", "Compute `h` again before this call, or cut the graph behind it, `h.detach()`,"),
        ("h.backward(torch.ones(3))", "Compute `h` again before this call."),
    ],
)
def test_what_leads_to_a_graph_that_was_run_before_tracking_is_named(cell, said):
    h = torch.ones(3, requires_grad=True).exp()
    h.sum().backward()
    (found,) = findings_of(cell, h=h)
    assert "By which call is unknown" in found.text and found.names == ("h",)
    assert found.fixes[0].text.startswith(said) and not found.fixes[0].edits
