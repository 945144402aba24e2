"""What the `forward` of a custom Function writes in place to its inputs, also where its `backward` writes, too."""

import pytest
from told import findings_of, record_of

from graphwidget.diagnosis.source.edits import text_edit

START = "x = torch.rand(3, 4, requires_grad=True)"
USE = "y = torch.sigmoid(x)\nloss = op(y).pow(2).sum()\nloss.backward({})"


def own(forward: str, backward: str, before: str = "", after: str = "op = Own.apply") -> str:
    lines = [before, "class Own(torch.autograd.Function):", "    @staticmethod", "    def forward(ctx, x):"]
    lines += [f"        {line}" for line in forward.split("; ")]
    lines += ["    @staticmethod", "    def backward(ctx, g):", *(f"        {line}" for line in backward.split("; "))]
    return "\n".join([*lines, after])


@pytest.mark.parametrize("how", ["", "retain_graph=True"])
@pytest.mark.parametrize(
    ("text", "by"),
    [
        (own("x[0] = 0.5; return x + 1", "g[0] = 0; return g"), "x[0] = 0.5"),
        (own("x.mul_(2); return x + 1", "return g.mul_(2)"), "x.mul_(2)"),
        (own("torch.mul(x, 0.5, out=x); return x + 1", "torch.mul(g, 0.5, out=g); return g.mul_(1)"), "torch.mul(x"),
        (own("halve(x); return x + 1", "halve(g); return g", "def halve(t):\n    t *= 0.5"), "t *= 0.5"),
    ],
)
def test_a_write_in_forward_is_found_behind_a_backward_that_writes(text: str, by: str, how: str) -> None:
    (found,) = findings_of(START, text, USE.format(how))
    assert found.kind == "inplace" and found.node == "SigmoidBackward0" and found.tensor == "y"
    assert found.modified_at.cell == 2 and found.modified_at.source.strip().startswith(by)


def test_what_out_names_is_what_is_copied() -> None:
    text = own("torch.mul(x, 0.5, out=x); return x + 1", "return g.mul(0.5)")
    (found,) = findings_of(START, text, USE.format(""))
    assert [edit.new.strip() for edit in found.fixes[0].edits] == ["x = x.clone()"]
    assert not findings_of(START, text_edit.apply(text, found.fixes[0].edits), USE.format(""))


@pytest.mark.parametrize("forward", ["x.mul_(2); ctx.mark_dirty(x); return x", "ctx.mark_dirty(x); return x.mul_(2)"])
def test_a_function_that_marks_what_it_writes_to_is_handed_a_copy(forward: str) -> None:
    text = own(forward, "return g * 2", after="def op(v):\n    return Own.apply(v)")
    (found,) = findings_of(START, text, USE.format(""))
    assert found.modified_by == "return Own.apply(v)" and "x.mul_" not in found.text
    fixed = text_edit.apply(text, found.fixes[0].edits)
    assert "    v = v.clone()\n    return Own.apply(v)" in fixed
    assert not findings_of(START, fixed, USE.format(""))


@pytest.mark.parametrize("how", ["", "retain_graph=True"])
def test_a_backward_that_itself_writes_to_what_was_saved_leaves_the_node_unknown(how: str) -> None:
    """The tensor that was modified before is another one: the call has not come to it."""
    text = own("return x + 1", "kept[0].mul_(2); return g", "kept = []")
    use = (
        "w = torch.rand(5, 3, 4, requires_grad=True)\na = w.sigmoid()\nb = (a.sum(0) + x).exp()\nkept.append(b.detach())\n"
        f"loss = op(b).sum()\nwith torch.no_grad():\n    a.add_(1)\nloss.backward({how})"
    )
    (call,) = record_of(START, text, use).calls
    assert call.result == "raised" and "output 0 of Exp" in (call.error or "")
    assert call.failed_node in (None, "ExpBackward0")


@pytest.mark.parametrize("how", ["", "retain_graph=True"])
def test_writes_to_copies_are_no_finding(how: str) -> None:
    text = own("x = x.clone(); x[0] *= 2; return x", "g = g.clone(); g[0] *= 2; return g")
    assert not findings_of(START, text, USE.format(how))
