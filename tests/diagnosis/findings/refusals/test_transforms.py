"""What `torch.func` refuses."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

DEFINED = "from torch.func import grad, jvp, vmap\nx = torch.ones(4, 3)"


def only(*cells: str):
    (found,) = findings_of(*cells)
    return found


@pytest.mark.parametrize(
    ("body", "call", "words", "fix"),
    [
        ("return a if a.sum() > 0 else -a", "vmap(f)(x)", "asks for one value", "differentiable_op"),
        ("return a[a > 0]", "vmap(f)(x)", "shape that depends on values", "differentiable_op"),
        ("return a + torch.rand(3)", "vmap(f)(x)", "draws random numbers", "say_randomness"),
        ("return a * 2", "grad(f)(x)", "no gradient of the kind", "scalar_loss"),
        ("a.requires_grad_()\n    return a.sum()", "grad(f)(x)", "steers autograd", "transform_instead"),
    ],
)
def test_a_refusal_has_its_line_and_its_reason(body: str, call: str, words: str, fix: str) -> None:
    found = only(DEFINED, f"def f(a):\n    {body}", f"out = {call}")
    assert words in found.headline and found.fixes[0].id == fix and found.failed_at is not None


def test_values_written_where_nothing_is_mapped() -> None:
    found = only(DEFINED, "def f(a):\n    out = torch.zeros(3)\n    out[0] = a[0]\n    return out", "vmap(f)(x)")
    assert found.headline.startswith("`out[0] = a[0]` writes mapped values")
    assert found.failed_at.line == 3 and "`vmap(f)(x)` (In[3], line 1) is the call" in found.text


@pytest.mark.parametrize(
    ("body", "edited"),
    [
        ("out = torch.zeros(3)\n    out[0] = a[0]", "a.new_zeros(3)"),
        ("out = torch.full((3,), 2.0)\n    out[1:] = a[1:]", "a.new_full((3,), 2.0)"),
        ("out = torch.ones_like(scale)\n    out.mul_(a)", "a.new_ones(scale.shape)"),
    ],
)
@pytest.mark.parametrize("call", ["vmap(f)(x)", "vmap(grad(lambda a: f(a).sum()))(x)"])
def test_what_is_filled_is_made_of_what_is_mapped(body: str, edited: str, call: str) -> None:
    start, text = f"{DEFINED}\nscale = torch.ones(3)", f"def f(a):\n    {body}\n    return out"
    found = only(start, text, call)
    fixed = text_edit.apply(text, found.fixes[0].edits)
    assert edited in fixed and not findings_of(start, fixed, call)


def test_what_is_not_mapped_is_no_model_for_what_is_filled() -> None:
    text = "def f(a):\n    out = torch.zeros(3)\n    b = a * 2\n    out[0] = b[0]\n    return out"
    found = only(DEFINED, text.replace("def f(a)", "def f(k, a)"), "vmap(f, in_dims=(None, 0))(torch.ones(3), x)")
    assert [edit.new for edit in found.fixes[0].edits] == ["a.new_zeros"]


def test_randomness_is_said_where_the_only_vmap_is() -> None:
    found = only(DEFINED, "def f(a):\n    return nn.functional.dropout(a)", "out = vmap(f)(x)")
    assert found.fixes[0].edits[0].new.endswith("randomness='different'")


def test_arguments_that_do_not_fit() -> None:
    found = only(DEFINED, "out = vmap(lambda a, scale: a * scale)(x, 2.0)")
    assert found.fixes[0].id == "fitting_dims"


@pytest.mark.parametrize(
    ("forward", "setup"),
    [
        ("def forward(ctx, a):\n        ctx.save_for_backward(a)\n        return a.sin()", "ctx.save_for_backward(a)"),
        (
            "def forward(ctx, a):\n        out = a.exp()\n        ctx.save_for_backward(out)\n        return out",
            "out = output\n        ctx.save_for_backward(out)",
        ),
        ("def forward(ctx, a):\n        half = a / 2\n        ctx.half = half\n        return half.sin()", None),
        ("def forward(ctx, a):\n        ctx.a, b = a, a * 2\n        return b.sin()", None),
    ],
)
def test_what_forward_saves_moves_into_a_method_of_its_own(forward: str, setup: str | None) -> None:
    own = (
        f"class Own(torch.autograd.Function):\n    @staticmethod\n    {forward}\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g"
    )
    found = only(DEFINED, own, "grad(lambda a: Own.apply(a).sum())(x)")
    edits = found.fixes[0].edits
    if setup is None:  # it saves what `setup_context` does not get
        assert not edits
    else:
        assert edits[0].new.endswith(f"def setup_context(ctx, inputs, output):\n        a, = inputs\n        {setup}")
        assert "def forward(a):" in edits[0].new and "ctx.save" not in edits[0].new.split("def setup_context")[0]


def test_a_function_without_a_rule_is_named() -> None:
    own = (
        "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n        return a * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * 2"
    )
    found = only(DEFINED, own, "grad(lambda a: Own.apply(a).sum())(x)")
    assert (
        found.tensor == "Own"
        and (found.made_at.cell, found.made_at.line) == (2, 3)
        and "setup_context" in found.fixes[0].text
    )


METHODS = (
    "    @staticmethod\n    def forward(ctx, a):\n        ctx.save_for_backward(a)\n        return a.sin()\n"
    "    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.saved_tensors[0].cos()\n"
)


@pytest.mark.parametrize(
    ("defining", "applying"),
    [
        (f"class Own(torch.autograd.Function):\n{METHODS}sine = Own.apply", "sine"),
        (f"def make():\n  class Own(torch.autograd.Function):\n{METHODS}  return Own.apply\nsine = make()", "sine"),
        (
            f"from torch.autograd import Function as Fn\nclass Own(Fn):\n{METHODS}sines = {{'a': Own}}",
            "sines['a'].apply",
        ),
        (f"class Base(torch.autograd.Function):\n{METHODS}class Own(Base):\n    pass", "Own.apply"),
    ],
)
def test_a_function_is_known_whatever_the_line_calls_it(defining: str, applying: str) -> None:
    found = only(DEFINED, defining, f"out = grad(lambda a: {applying}(a).sum())(x)")
    assert found.headline.startswith("`Own` has no rule") and found.tensor == "Own"
    assert found.made_at.cell == 2 and found.made_at.source.strip() == "def forward(ctx, a):"
    fixed = text_edit.apply(defining, found.fixes[0].edits)
    assert not findings_of(DEFINED, fixed, f"out = grad(lambda a: {applying}(a).sum())(x)")


def test_a_flag_of_the_class_stands_behind_its_docstring() -> None:
    own = (
        'class Own(torch.autograd.Function):\n    """Doubles."""\n    @staticmethod\n    def forward(a):\n'
        "        return a * 2\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n        pass\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * 2\ndouble = Own.apply"
    )
    found = only(DEFINED, own, "out = vmap(lambda a: double(a))(x)")
    assert found.made_at.source.startswith("class Own")
    fixed = text_edit.apply(own, found.fixes[0].edits)
    assert fixed.splitlines()[2].strip() == "generate_vmap_rule = True"
    assert not findings_of(DEFINED, fixed, "out = vmap(lambda a: double(a))(x)")


def test_a_batch_norm_under_vmap_keeps_no_statistics() -> None:
    cells = (
        DEFINED + "\nfrom torch.func import functional_call",
        "net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))",
        "def f(a):\n    return functional_call(net, dict(net.named_parameters()), (a,)).sum()",
        "out = vmap(f)(x[None].repeat(5, 1, 1))",
    )
    found = only(*cells)
    assert "keeps running statistics" in found.headline and found.failed_at.line == 2
    (fix,) = found.fixes
    assert fix.choice and fix.edit[-1].endswith("nn.BatchNorm1d(4, track_running_stats=False))")
