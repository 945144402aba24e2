"""A custom Function that computes in `forward` what its `backward` needs a derivative of."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

CLASS = """class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        {forward}

    @staticmethod
    def backward(ctx, grad):
        {backward}
"""
ASKED = (
    "x = torch.rand(5, requires_grad=True)\nw = torch.rand(5, requires_grad=True)\ny = F.apply({x}, 3.0)\n"
    "g = torch.autograd.grad(y.sum(), x, create_graph=True)[0]\nh = torch.autograd.grad(g.sum(), x)[0]"
)


def text_of(forward: str, backward: str) -> str:
    return CLASS.format(**{n: t.replace("\n", "\n        ") for n, t in (("forward", forward), ("backward", backward))})


@pytest.mark.parametrize("given", ["x", "x * w"])
@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("ctx.k = k\nctx.c = torch.cos(k * x)\nreturn torch.sin(k * x)", "return grad * ctx.k * ctx.c, None"),
        ("ctx.e = torch.exp(x)\nreturn torch.exp(x)", "return grad * ctx.e, None"),
        (
            "z = k * x\nc = torch.cos(z)\nctx.save_for_backward(x, c)\nreturn torch.sin(z)",
            "a, c = ctx.saved_tensors\nreturn grad * 3.0 * c, None",
        ),
        (
            "c = torch.cos(x)\nctx.save_for_backward(c)\nreturn torch.sin(x)",
            '"""cos"""\nc, = ctx.saved_tensors\nreturn grad * c, None',
        ),
    ],
)
def test_it_is_computed_again_in_backward(forward: str, backward: str, given: str) -> None:
    text, asked = text_of(forward, backward), ASKED.format(x=given)
    (found,) = findings_of(text, asked)
    assert "`F.forward` computed that" in found.text and "linear" not in found.text
    (fix,) = found.fixes
    assert fix.id == "save_the_input" and fix.edits
    assert not findings_of(text_edit.apply(text, fix.edits), asked)


@pytest.mark.parametrize(
    ("forward", "backward", "words"),
    [
        (
            "ctx.save_for_backward(x)\nreturn x.sin()",
            "x, = ctx.saved_tensors\nreturn grad * x.detach().cos(), None",
            "`detach`",
        ),
        (
            "ctx.save_for_backward(x)\nreturn x.sin()",
            "x, = ctx.saved_tensors\nwith torch.no_grad():\n    g = grad * x.cos()\nreturn g, None",
            "`torch.no_grad()`",
        ),
    ],
)
def test_a_cut_in_backward_itself(forward: str, backward: str, words: str) -> None:
    (found,) = findings_of(text_of(forward, backward), ASKED.format(x="x * w"))
    assert "In `F.backward`" in found.text and words in found.text


@pytest.mark.parametrize("given", ["x", "x * w"])
@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (
            "m = (x > 0).float()\nctx.save_for_backward(m)\nreturn x * m",
            "m, = ctx.saved_tensors\nreturn grad * m, None",
        ),
        ("ctx.k, ctx.n = k, x.size(0)\nreturn x * k / ctx.n", "return grad * ctx.k / ctx.n, None"),
        ("ctx.m = torch.sign(x)\nreturn x.abs()", "return grad * ctx.m, None"),
    ],
)
def test_a_mask_or_a_number_is_not_blamed(forward: str, backward: str, given: str) -> None:
    (found,) = findings_of(text_of(forward, backward), ASKED.format(x=given))
    assert "computed that" not in found.text and not any(fix.edits for fix in found.fixes)


def test_an_output_that_is_kept_has_its_graph() -> None:
    text = text_of(
        "y = torch.exp(x)\nctx.save_for_backward(y)\nreturn y", "y, = ctx.saved_tensors\nreturn grad * y, None"
    )
    assert not findings_of(text, ASKED.format(x="x * w"))


def test_names_that_backward_has_otherwise_allow_no_edit() -> None:
    text = text_of("ctx.c = torch.cos(x)\nreturn torch.sin(x)", "x = 1.0\nreturn x * grad * ctx.c, None")
    (found,) = findings_of(text, ASKED.format(x="x"))
    assert found.fixes[0].id == "save_the_input" and not found.fixes[0].edits
