"""Leaves that are trained by hand, and replaced by new tensors: all of them are changed in place."""

import pytest
from told import findings_of

from graphwidget.diagnosis.no_graph.leaves import by_hand
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit

MADE = "w = torch.zeros(1, requires_grad=True)\nb = torch.zeros(1, requires_grad=True)"


def in_place(block: str) -> str:
    """The text after the edits for its last statement that replaces a leaf."""
    own = [one for one in syntax.own_statements(syntax.parse(block).body) if by_hand.updated_in_place(block, one)]
    updates = by_hand.updates_beside(block, own[-1]) if own else {}
    return text_edit.apply(block, by_hand.rewritten(None, block, updates))


def test_all_leaves_of_a_block_are_changed_in_one_fix() -> None:
    step = "with torch.no_grad():\n    w = w - 0.1 * w.grad\n    b = b - 0.1 * b.grad"
    found = findings_of(MADE, "for i in range(2):\n    (w * b + w).sum().backward()\n" + indented(step))[0]
    assert found.kind == "no_grad"
    news = [edit.new for edit in found.fixes[0].edits]
    assert news == ["w -= 0.1 * w.grad", "b -= 0.1 * b.grad"]
    assert "they change the tensors, and make no new ones" in found.fixes[0].text


def test_values_cut_off_on_the_right_are_changed_in_place_without_a_record() -> None:
    steps = "    w = w.data - 0.1 * w.grad\n    b = (b - 0.1 * b.grad).detach()"
    found = findings_of(MADE, f"for i in range(2):\n    loss = (w * b + w).sum()\n    loss.backward()\n{steps}")[0]
    (edit,) = found.fixes[0].edits
    lines = ["with torch.no_grad():", "        w -= 0.1 * w.grad", "        b -= 0.1 * b.grad"]
    assert edit.new.rstrip("\n").split("\n") == lines


@pytest.mark.parametrize(
    ("step", "new"),
    [
        ("for k in ps:\n        ps[k] = ps[k] - lr * ps[k].grad", "for k in ps:\n        ps[k] -= lr * ps[k].grad"),
        (
            "for i, p in enumerate(ps):\n        ps[i] = p - lr * p.grad",
            "for i, p in enumerate(ps):\n        p -= lr * p.grad",
        ),
        (
            "for k, p in ps.items():\n        ps[k] = p.detach() - lr * p.grad",
            "for k, p in ps.items():\n        p -= lr * p.grad",
        ),
        ("w, b = w - lr * w.grad, b - lr * b.grad", "w -= lr * w.grad\n    b -= lr * b.grad"),
        ("ps = [p - lr * p.grad for p in ps]", "for p in ps:\n        p -= lr * p.grad"),
        ("w, b = [p - lr * p.grad for p in (w, b)]", "for p in (w, b):\n        p -= lr * p.grad"),
        ("self.w = self.w - lr * self.w.grad", "self.w -= lr * self.w.grad"),
    ],
)
def test_every_form_of_such_a_step_is_written_in_place(step: str, new: str) -> None:
    assert in_place(f"with torch.no_grad():\n    {step}") == f"with torch.no_grad():\n    {new}"


def test_a_gradient_of_its_own_call_counts_too() -> None:
    block = f"{MADE}\ngw, gb = torch.autograd.grad(loss, (w, b))\nwith torch.no_grad():\n    w = w - gw\n    b = b - gb"
    assert in_place(block).endswith("    w -= gw\n    b -= gb")


@pytest.mark.parametrize(
    "step",
    [
        "w, b = w - lr * w.grad, b - w * b.grad",  # the second reads the first as it was
        "new = [p - lr * p.grad for p in ps]",  # other tensors, as an inner loop makes them
        "ema = ema - 0.1 * (ema - w)",
        "ps[0] = p - lr * p.grad",  # which element that is is not known
    ],
)
def test_what_is_no_such_step_stays(step: str) -> None:
    block = f"with torch.no_grad():\n    {step}"
    assert in_place(block) == block


def indented(block: str) -> str:
    return "\n".join(f"    {line}" for line in block.split("\n"))
