"""Hooks that each pass registers anew, and the graphs that they keep."""

import pytest
from told import findings_of

PASS = """
net = nn.Linear(2, 2)
def watch(out):
    net.weight.register_hook(lambda grad: print(end="") if out is None else None)
for _ in range(8):
    out = net(torch.ones(1, 2)).exp()
    watch(out)
    out.sum().backward()
"""


@pytest.mark.parametrize("more", ["", "net.bias.register_hook(print)\n"])
def test_the_line_that_registers_them_is_named_and_no_detach_is_advised(more):
    found = [one for one in findings_of(PASS + more) if one.kind == "leak"]
    (fix,) = found[0].fixes
    assert fix.id == "remove_hook" and "`handle.remove()`" in fix.text and not fix.edits
    if not more:
        assert (found[0].stored_at.line, found[0].cause.line) == (4, 4)
        assert "In[1], line 4" in fix.text
    else:
        assert "Run the line once" in fix.text  # which of two it is, is not known
