"""What is said of backward hooks that never ran."""

from dataclasses import replace

import pytest
from told import record_of

from graphwidget.diagnosis.diagnose import diagnose, may_have_unrun_hooks
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Lineage, MeasuredHook, PlainInput, TextLine

FROZEN = """
class Cam:
    def __init__(self, layer):
        self.grads = {}
        layer.register_full_backward_hook(self.hook)
    def hook(self, module, grad_input, grad_output):
        self.keep(grad_output[0])
    def keep(self, grad):
        self.grads["layer"] = grad
    def get(self):
        return self.grads["layer"]
body, head = nn.Linear(3, 3), nn.Linear(3, 1)
body.requires_grad_(False)
cam, net, x = Cam(body), nn.Sequential(body, head), torch.ones(2, 3)
out = torch.softmax(net(x), 1)
out.sum().backward()
"""
READS = FROZEN + "print(cam.grads['layer'].mean())\n"
READS_BEHIND = FROZEN + "grad = cam.get()\nprint(grad.mean())\n"
PRINTS = FROZEN + "print(x.nothing)\n"


def line_of(cell, text):
    return next(at for at, line in enumerate(cell.splitlines(), 1) if text in line)


def hook_in(cell, why="frozen", hook="def hook", **fields):
    spot = {name: TextLine(1, None, line_of(cell, text)) for name, text in (("by", ".register_"), ("hook", hook))}
    called = (TextLine(1, None, line_of(cell, "net(x)")),)
    given = {"path": "0", "called": called, "plain": PlainInput(0, "", 1), **fields}
    return MeasuredHook("register_full_backward_hook", (spot["by"],), spot["hook"], (0,), why, **given)


def told(cell, *hooks):
    record = record_of(cell)
    return [one for one in diagnose(replace(record, lineage=Lineage(None, hooks=hooks))) if "hook" in one.headline]


@pytest.mark.parametrize("cell", [READS, READS_BEHIND])
def test_a_line_that_reads_what_the_hook_does_not_fill(cell):
    (found,) = told(cell, hook_in(cell))
    assert (found.kind, found.severity, found.failed_at is not None) == ("refused", "error", True)
    assert "`grads`" in found.text and {"hook", "grads"} <= {*found.names}
    fix, thaw = found.fixes
    assert (fix.id, fix.choice, thaw.id) == ("input_requires_grad", True, "unfreeze")
    assert "out = torch.softmax(net(x.requires_grad_()), 1)" in text_edit.apply(cell, fix.edits)


@pytest.mark.parametrize("cell", [FROZEN, PRINTS])
def test_without_such_a_line_it_is_a_warning(cell):
    (found,) = told(cell, hook_in(cell))
    assert (found.kind, found.severity, found.failed_at) == ("silent", "warning", None)


@pytest.mark.parametrize("hook", [{"elsewhere": True}, {"why": "grad_off"}, {"why": ""}, {"why": "uncalled"}])
def test_what_may_be_meant_is_told_only_of_an_error(hook):
    assert told(FROZEN, hook_in(FROZEN, **hook)) == []
    assert [one.severity for one in told(READS, hook_in(READS, **hook))] == ["error"]


LATE = """
net, x, seen = nn.Linear(3, 1), torch.ones(2, 3), []
loss = net(x).sum()
net.register_full_backward_hook(lambda *given: seen.append(given[2]))
loss.backward()
print(seen[0])
"""


def test_a_hook_is_registered_before_what_it_waits_for():
    (found,) = told(LATE, hook_in(LATE, "late", "lambda", path="", plain=None))
    text = text_edit.apply(LATE, found.fixes[0].edits)
    assert found.fixes[0].id == "register_sooner" and "seen" in found.names
    assert line_of(text, ".register_") < line_of(text, "net(x)") and text.count(".register_") == 1


def test_a_hook_that_is_made_of_the_result_stays():
    cell = LATE.replace("seen.append(given[2])", "seen.append(loss)").replace(
        "lambda *given", "lambda *given, loss=loss"
    )
    (found,) = told(cell, hook_in(cell, "late", "lambda", path="", plain=None))
    assert found.fixes[0].edits == ()


def test_a_call_that_raised_or_is_not_known_tells_nothing():
    assert told(READS, replace(hook_in(READS), calls=(7,))) == []


def test_only_programs_with_hooks_run_again():
    assert may_have_unrun_hooks(record_of(FROZEN))
    assert not may_have_unrun_hooks(record_of(FROZEN.replace("register_full_backward_hook", "register_forward_hook")))
    assert not may_have_unrun_hooks(record_of(FROZEN.replace("out.sum().backward()", "")))
