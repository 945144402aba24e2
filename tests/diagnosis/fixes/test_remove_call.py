"""Two calls that run one backward through the same wrapper."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply_to

PROGRAM = """
class Amp:
    def __init__(self, opt):
        self.opt, self.n = opt, 0
    def backward(self, loss):
        BODY
class Task:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.amp = Amp(torch.optim.SGD(self.net.parameters(), 0.1))
    def criterion(self, k):
        loss = self.net(torch.ones(2, 3)).square().mean()
        if k >= FIRST:
            self.amp.backward(loss)
        return loss
    def fit(self):
        for k in range(5):
            loss = self.criterion(k)
            self.amp.backward(loss)
            self.amp.opt.step()
            self.amp.opt.zero_grad()
Task().fit()
"""


def fixes(body, first="0"):
    (found,) = findings_of(PROGRAM.replace("BODY", body).replace("FIRST", first))
    return [(fix.id, fix.verified, fix.text, bool(fix.edits)) for fix in found.fixes]


def test_the_second_is_left_out_also_where_the_wrapper_scales():
    """With `retain_graph=True` the call would run, and double each gradient."""
    text = "Remove `self.amp.backward(loss)` (In[1], line 19): In[1], line 14 has run this backward."
    for body in ("loss.backward()", "(loss / 2).backward()"):
        assert fixes(body) == [("remove_duplicate_call", True, text, True)]


def test_it_is_advice_where_the_line_does_more_or_is_the_only_one_in_other_passes():
    text = "Leave out `self.amp.backward(loss)` (In[1], line 19) where In[1], line 14 has run this backward."
    for arguments in (("self.n += 1; loss.backward()",), ("loss.backward()", "2")):
        assert fixes(*arguments) == [("remove_duplicate_call", False, text, False)]


LEAF = "w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)"
LOSS = "loss = (w * v).exp().sum()"


def first_of(*cells):
    (found,) = findings_of(LEAF, *cells)
    return found.fixes[0].id


@pytest.mark.parametrize(
    "cells",
    [
        (LOSS, "loss.backward()", "loss.backward()"),
        (f"{LOSS}\nloss.backward()\n# once more\nloss.backward()\nw.data -= w.grad",),
        (LOSS, "loss.backward()\nprint(loss.item())", "n = 1", "print(n)\nloss.backward()\nw.data -= w.grad"),
        (f"def step():\n    {LOSS}\n    loss.backward()\n    print('ran')\n    loss.backward()", "step()"),
        (f"for _ in range(2):\n    {LOSS}\n    loss.backward()\n    loss.backward()",),
        (f"def say(x):\n    return x.item()\n{LOSS}\nloss.backward()\nsay(loss)\nloss.backward()",),
    ],
)
def test_a_call_written_twice_in_a_row_is_left_over(cells):
    (found,) = findings_of(LEAF, *cells)
    fix = found.fixes[0]
    assert (fix.id, fix.verified) == ("remove_duplicate_call", True)
    mended = apply_to(dict(enumerate((LEAF, *cells), 1)), fix.edits)
    assert not findings_of(*mended.values())


@pytest.mark.parametrize(
    "cells",
    [
        (LOSS, "loss.backward()\nprint(w.grad)", "loss.backward()"),
        (LOSS, "loss.backward()", "w.grad.zero_()", "loss.backward()"),
        (f"{LOSS}\nloss.backward()\nw.grad = v.grad = None\nloss.backward()",),
        (f"opt = torch.optim.SGD([w, v], 0.1)\n{LOSS}\nloss.backward()\nopt.zero_grad()\nloss.backward()",),
        (f"def show():\n    print(w.grad)\n{LOSS}\nloss.backward()\nshow()\nloss.backward()",),
        (f"def look():\n    show()\ndef show():\n    print(w.grad)\n{LOSS}\nloss.backward()\nlook()\nloss.backward()",),
        (f"look = print\n{LOSS}\nloss.backward()\nlook(w)\nloss.backward()",),
        (f"{LOSS}\nloss.backward()\nw.register_hook(lambda g: g * 2)\nloss.backward()",),
        (LOSS, "loss.backward()", "if v.sum() > 0:\n    loss.backward()"),
        (LOSS, "loss.backward()", "loss.backward(create_graph=True)"),
        (LOSS, "loss.backward(torch.tensor(1.0))", "loss.backward(torch.tensor(2.0))"),
        (LOSS, "loss.backward()", "loss.backward(inputs=[w])"),
        (f"def half():\n    loss.backward()\n{LOSS}\nhalf()\nprint(w)", "half()"),
    ],
)
def test_a_call_whose_gradient_is_used_or_cleared_in_between_is_meant(cells):
    assert first_of(*cells) != "remove_duplicate_call"
