"""Code of the user's own that PyTorch runs: which tensors did not fit, by name, and what to write."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

X = "x = torch.ones(4, 3, requires_grad=True)\nnet = nn.Linear(3, 2)"


def function(forward: str, backward: str, *, arguments: str = "x", gradients: str = "g") -> str:
    head = "    @staticmethod\n    def "
    bodies = [body.replace("\n", "\n        ") for body in (forward, backward)]
    return (
        f"class F(torch.autograd.Function):\n{head}forward(ctx, {arguments}):\n        {bodies[0]}\n"
        f"{head}backward(ctx, {gradients}):\n        {bodies[1]}"
    )


def only(*cells: str):
    (found,) = findings_of(X, *cells)
    return found


def test_a_product_in_a_backward_is_turned_round() -> None:
    linear = function(
        "ctx.save_for_backward(x, w)\nreturn x.mm(w.t())",
        "x, w = ctx.saved_tensors\nreturn g.mm(w.t()), g.t().mm(x)",
        arguments="x, w",
    )
    found = only(linear, "F.apply(x, net.weight).sum().backward()")
    assert "There `g` is [4, 2]" in found.text and "`w` is [2, 3]" in found.text
    assert [edit.new for edit in found.fixes[0].edits] == ["w"]
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 9)


def test_an_error_in_forward_is_told_with_the_function_and_the_line_that_applied_it() -> None:
    linear = function("return x @ w", "return g, None", arguments="x, w")
    found = only(linear, "F.apply(x, net.weight)")
    assert found.headline == "`F.forward` raised RuntimeError." and "In[3], line 1" in found.text
    assert [edit.new for edit in found.fixes[0].edits] == ["w.t()"]


def test_a_mask_of_a_hook_is_transposed() -> None:
    found = only("mask = torch.ones(3, 2)", "net.weight.register_hook(lambda g: g * mask)", "net(x).sum().backward()")
    assert found.headline == "A lambda raised RuntimeError while the gradients were computed."
    assert [edit.new for edit in found.fixes[0].edits] == ["mask.t()"]
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (3, 1)


def test_one_value_for_each_row_gets_a_dimension() -> None:
    hook = "def hook(grad):\n    keep = torch.ones(2)\n    return grad * keep\nnet.weight.register_hook(hook)"
    found = only(hook, "net(x).sum().backward()")
    assert "`grad` has 3, and `keep` has 2" in found.text
    assert [edit.new for edit in found.fixes[0].edits] == ["keep[:, None]"]


def test_the_gradients_of_a_module_are_tuples() -> None:
    hook = "def hook(module, given, out):\n    out.mean()\nnet.register_full_backward_hook(hook)"
    found = only(hook, "net(x).sum().backward()")
    assert "`out` is a tuple of 1" in found.text and [edit.new for edit in found.fixes[0].edits] == ["out[0]"]


def test_two_types_in_a_product_are_named() -> None:
    both = function(
        "ctx.save_for_backward(w)\nreturn x.clone()", "(w,) = ctx.saved_tensors\nreturn g @ w, None", arguments="x, w"
    )
    found = only(both, "F.apply(x, torch.ones(3, 3, dtype=torch.double)).sum().backward()")
    assert "`g` is float32, `w` is float64" in found.text and "`.to(w.dtype)`" in found.fixes[0].text


CONTEXT = {
    "never set": (function("return x * 2", "return g * ctx.k"), "that never sets `ctx.k`"),
    "saved otherwise": (
        function("ctx.save_for_backward(x)\nreturn x * 2", "x, y = ctx.saved_tensors\nreturn g"),
        "has what was saved, in that order: `x`",
    ),
    "a variable of forward": (function("inside = x > 0\nreturn x * 2", "return g * inside"), "only `ctx` is passed on"),
    "two outputs": (function("return x * 2, x * 3", "return g"), "one gradient for each output of `forward`: here 2"),
}


@pytest.mark.parametrize("what", CONTEXT)
def test_what_a_backward_does_not_get_is_said(what: str) -> None:
    cell, words = CONTEXT[what]
    found = only(cell, "y = F.apply(x)\n(y[0] if isinstance(y, tuple) else y).sum().backward()")
    assert words in found.text and found.names[0] == "F"
    assert found.cause is not None and found.cause.cell == 2


def test_what_is_saved_and_is_no_tensor_is_named() -> None:
    found = only(function("ctx.save_for_backward(x, k)\nreturn x * k", "return g", arguments="x, k"), "F.apply(x, 2.0)")
    assert found.headline == "`F.forward` saves `k`, a float, as if it were a tensor."
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 4)


@pytest.mark.parametrize(
    ("registered", "wants"),
    [("weight.register_hook(hook)", "the gradient"), ("register_full_backward_pre_hook(hook)", "`grad_output`")],
)
def test_a_hook_that_takes_other_arguments_is_told_what_it_is_called_with(registered: str, wants: str) -> None:
    found = only("def hook(a, b, c):\n    return None", f"net.{registered}", "net(x).sum().backward()")
    assert found.headline == "`hook` takes another number of arguments than it is called with."
    assert wants in found.fixes[0].text and found.cause is not None and (found.cause.cell, found.cause.line) == (2, 1)


def test_a_hook_that_reads_a_gradient_that_is_not_there_yet() -> None:
    found = only("net.weight.register_hook(lambda g: g + 0.9 * net.weight.grad)", "net(x).sum().backward()")
    assert "`.grad` is written after the hooks" in found.text
    assert "register_post_accumulate_grad_hook" in found.fixes[0].text


def test_errors_that_a_program_catches_or_that_are_not_of_autograd_are_no_matter() -> None:
    caught = "try:\n    F.apply(x)\nexcept ValueError:\n    pass"
    assert not findings_of(X, function("raise ValueError('no')", "return g"), caught)
    assert not findings_of(X, "net(torch.ones(4, 5))")
    assert not findings_of(X, "{'a': x}['b']")


KEPT = "ctx.cache = [x * 2]\nreturn x * x"


@pytest.mark.parametrize(
    ("takes", "left"),
    [
        ("ctx.cache = None", "doubled, = ctx.cache"),
        ("del ctx.cache", "doubled, = ctx.cache"),
        ("ctx.cache.clear()", "doubled, = ctx.cache"),
    ],
)
def test_what_a_first_backward_takes_away_from_ctx_is_left_there(takes: str, left: str) -> None:
    one = function(KEPT, f"{left}\n{takes}\nreturn g * doubled")
    found = only(one, "y = F.apply(x).sum()\ny.backward(retain_graph=True)\ny.backward()")
    assert f"`{takes}` (In[2], line 9) takes `ctx.cache` away" in found.text
    assert [(edit.start[0], edit.new) for edit in found.fixes[0].edits] == [(9, "")]


def test_what_a_backward_takes_and_uses_in_one_is_told_without_an_edit() -> None:
    one = function(KEPT, "doubled = ctx.cache.pop()\nreturn g * doubled")
    found = only(one, "y = F.apply(x).sum()\ny.backward(retain_graph=True)\ny.backward()")
    assert "takes `ctx.cache` away" in found.text and found.fixes[0].edits == ()


def test_a_first_backward_that_fails_took_nothing_away() -> None:
    one = function("ctx.cache = None\nreturn x * x", "doubled, = ctx.cache\nctx.cache = None\nreturn g * doubled")
    assert "takes `ctx.cache` away" not in only(one, "F.apply(x).sum().backward()").text


def test_a_backward_that_takes_too_few_gradients_gets_names_for_the_others():
    least = (
        "class Least(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        values, index = x.min(1)\n        ctx.save_for_backward(x, index)\n        return values, index\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        x, index = ctx.saved_tensors\n"
        "        return torch.zeros_like(x).scatter(1, index[:, None], grad[:, None])\n"
    )
    run = "w = torch.rand(3, 2, requires_grad=True)\nvalues, index = Least.apply(w)\nvalues.sum().backward()"
    (found,) = findings_of(least, run)
    assert found.fixes[0].edit == ("- def backward(ctx, grad):", "+ def backward(ctx, grad, grad_index):")
    assert not findings_of(text_edit.apply(least, found.fixes[0].edits), run, "assert w.grad.sum() == 3")
