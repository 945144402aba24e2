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


COLLECTORS = """
class Taps:
    def __init__(self, net):
        self.kept = []
        net.register_forward_hook(self)

    def __call__(self, module, args, output):
        self.kept.append(output)

net = nn.Linear(2, 2)
for _ in range(4):
    taps = Taps(net)
    for _ in range(4):
        taps.kept.clear()
        loss = net(torch.ones(1, 2)).exp().sum()
        loss.backward()
"""


def test_objects_of_one_class_that_only_hooks_refer_to_are_told_apart_and_told_once():
    (found,) = [one for one in findings_of(COLLECTORS + "del taps") if one.kind == "leak"]
    assert found.carriers == ("Taps(…).kept",)
    assert "pile up in `Taps(…).kept`" in found.headline
    assert [fix.id for fix in found.fixes] == ["remove_hook"]


def test_an_object_whose_hook_is_removed_keeps_nothing():
    handled = COLLECTORS.replace("        net.register", "        self.handle = net.register")
    assert not findings_of(handled + "    taps.handle.remove()\ndel taps")
