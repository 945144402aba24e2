"""Gradients that PyTorch refuses, and errors of code that a backward runs."""

import pytest
from told import findings_of

NET = "net = nn.Linear(3, 1)\nx = torch.ones(4, 3)"


def only(*cells: str):
    (found,) = findings_of(*cells)
    return found


def spot(place):
    assert place is not None
    return place.cell, place.line


# ------------------------------------------------------------------ of PyTorch's own operations


def test_a_gradient_that_is_not_like_its_input_has_the_operation_and_both_shapes() -> None:
    found = only(
        "src = torch.ones(2, 3, requires_grad=True)\n"
        "z = torch.zeros(1, 3).scatter(0, torch.zeros(1, 3, dtype=torch.long), src.exp())\n"
        "z.tanh().sum().backward()"
    )
    assert found.node == "ScatterBackward0" and spot(found.made_at) == (1, 2)
    assert "shape [2, 3]" in found.text and "[1, 3]" in found.text and not found.unexplained


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("y.backward(torch.ones(3, device='meta'))", "torch.ones(3, device='meta').to(y.device)"),
        ("torch.autograd.backward([y.sum(), y], [None, w * 2])", "(w * 2).to(y.device)"),
        ("torch.autograd.grad(y, x, grad_outputs=w)", "w.to(y.device)"),
    ],
)
def test_a_gradient_that_was_given_on_another_device_is_brought_to_its_root(line: str, new: str) -> None:
    found = only("x = torch.ones(3, requires_grad=True)\ny, w = x * 2, torch.ones(3, device='meta')", line)
    assert found.headline == "The gradient that was given is on another device than `y`." and spot(found.made_at) == (
        2,
        1,
    )
    assert "on meta" in found.text and "`y` is on cpu" in found.text
    assert [edit.new for edit in found.fixes[0].edits] == [new]


@pytest.mark.parametrize("line", ["torch.heaviside(net(x), net(x)).sum().backward()"])
def test_an_operation_without_a_derivative_is_named(line: str) -> None:
    found = only(NET, line)
    assert found.headline == "`heaviside` has no derivative." and found.fixes[0].id == "differentiable_op"


def test_an_operation_without_a_second_derivative_says_what_took_the_first() -> None:
    found = only(
        "x = torch.randn(1, 1, 4, 8, requires_grad=True)\ny = nn.functional.scaled_dot_product_attention(x, x, x)",
        "g, = torch.autograd.grad(y.sum(), x, create_graph=True)\ng.pow(2).sum().backward()",
    )
    assert found.headline == "`_scaled_dot_product_flash_attention` can be differentiated only once."
    assert "took the first derivative" in found.text and "SDPBackend.MATH" in found.fixes[0].text


TWICE = "\ng, = torch.autograd.grad(y.sum(), x, create_graph=True)\ng.pow(2).sum().backward()"
ATTEND = "import torch\ndef attend(x):\n    return nn.functional.scaled_dot_product_attention(x, x, x)"


def test_attention_that_is_differentiated_twice_is_made_of_plain_operations_where_it_is_applied() -> None:
    found = only(ATTEND, "x = torch.randn(1, 1, 4, 8, requires_grad=True)\ny = attend(x)" + TWICE)
    assert spot(found.made_at) == (1, 3) and "sdpa_kernel" in found.fixes[0].edits[0].new
    assert found.fixes[0].edits[0].new.endswith("    return nn.functional.scaled_dot_product_attention(x, x, x)")


def test_the_block_that_chose_the_implementation_is_changed() -> None:
    block = "from torch.nn.attention import SDPBackend, sdpa_kernel\nx = torch.randn(1, 1, 4, 8, requires_grad=True)\n"
    found = only(ATTEND, f"{block}with sdpa_kernel(SDPBackend.FLASH_ATTENTION):\n    y = attend(x)" + TWICE)
    assert spot(found.made_at) == (1, 3) and "(In[2], line 3) chose it" in found.text
    assert [edit.new for edit in found.fixes[0].edits] == ["sdpa_kernel(SDPBackend.MATH)"]


def test_an_argument_is_offered_only_where_it_chooses_another_implementation() -> None:
    for more, edits in (("", 1), (", p=1.0", 0)):
        found = only(f"x = torch.randn(4, 2, requires_grad=True)\ny = torch.cdist(x, torch.ones(3, 2){more})" + TWICE)
        assert spot(found.made_at) == (1, 2) and len(found.fixes[0].edits) == edits
        assert ("compute_mode" in found.fixes[0].text) == bool(edits)


def test_another_call_that_kept_its_graph_is_not_blamed() -> None:
    other = "z = torch.cdist(x, torch.zeros(3, 2))\nh, = torch.autograd.grad(z.sum(), x, create_graph=True)\n"
    made = f"x = torch.randn(4, 2, requires_grad=True)\n{other}y = torch.cdist(x, torch.ones(3, 2))"
    assert "zeros" not in only(made + TWICE).text


def test_nan_of_anomaly_mode_is_led_back_to_the_operation_with_a_pole() -> None:
    found = only(
        NET,
        "torch.autograd.set_detect_anomaly(True)\nd = (net(x) - net(x)).pow(2)\nloss = d.sqrt().sum()\n"
        "try:\n    loss.backward()\nfinally:\n    torch.autograd.set_detect_anomaly(False)",
    )
    assert found.headline == "The gradient becomes nan at `PowBackward0`."
    assert spot(found.made_at) == (2, 3) and "`SqrtBackward0`" in found.text and "find_nan(loss)" in found.text


@pytest.mark.parametrize("second", ["sqrt", "exp"])
def test_nan_at_one_of_many_nodes_is_led_back_where_all_come_through_one_line(second: str) -> None:
    found = only(
        NET,
        "torch.autograd.set_detect_anomaly(True)\nw = torch.zeros(2, requires_grad=True)\nloss = 0\n"
        f"for how in (torch.sqrt, torch.{second}):\n    part = how((w * w).sum())\n    loss = loss + part\n"
        "try:\n    loss.backward()\nfinally:\n    torch.autograd.set_detect_anomaly(False)",
    )
    assert found.headline == "The gradient becomes nan at `MulBackward0`."
    assert ("`SqrtBackward0`" in found.text) == (second == "sqrt") and spot(found.made_at) == (2, 5)


# ------------------------------------------------------------------ assigned, sparse


@pytest.mark.parametrize(
    ("given", "new"),
    [
        ("torch.ones(3)", "torch.ones(3).view_as(p)"),
        ("p.detach().double() * 2", "(p.detach().double() * 2).to(p.dtype)"),
        ("torch.ones(2)", None),
        ("1.0", None),
    ],
)
def test_an_assigned_gradient_is_made_like_its_tensor_where_that_loses_nothing(given: str, new: str | None) -> None:
    found = only("p = torch.ones(1, 3, requires_grad=True)", f"p.grad = {given}")
    assert found.names == ("p",) or found.tensor == "p"
    assert [edit.new for edit in found.fixes[0].edits] == ([new] if new else [])


def test_a_sparse_gradient_has_the_layer_that_makes_it() -> None:
    layer = "emb = nn.Embedding(4, 2, sparse=True)\nopt = torch.optim.Adam(emb.parameters())"
    found = only(layer, "emb(torch.tensor([1])).sum().backward()\nopt.step()")
    assert spot(found.made_at) == (1, 1) and found.fixes[0].edits[0].new == "False"


# ------------------------------------------------------------------ hooks and code of the program's own


def test_a_hook_where_no_gradient_comes() -> None:
    found = only(NET, "x.register_hook(print)")
    assert (found.kind, found.tensor) == ("no_grad", "x")
    assert [fix.id for fix in found.fixes] == ["unfreeze", "skip_none"]


def test_a_hook_under_no_grad_is_registered_only_where_there_is_a_gradient() -> None:
    helper = "def watched(x):\n    h = net(x)\n    h.retain_grad()\n    return h"
    found = only(NET, helper, "with torch.no_grad():\n    watched(x)")
    assert "`torch.no_grad()` (In[3], line 1)" in found.text
    assert [fix.id for fix in found.fixes] == ["skip_none", "remove_no_grad"]
    assert "if h.requires_grad:" in found.fixes[0].edits[0].new
    assert [edit.new for edit in found.fixes[1].edits] == ["torch.enable_grad()"]


def test_a_hook_that_returns_another_shape() -> None:
    found = only(NET, "def first(grad):\n    return grad[:1]\ny = net(x)\ny.register_hook(first)\ny.sum().backward()")
    assert found.names == ("first",) and spot(found.cause) == (2, 2)


def test_a_hook_of_a_module_that_returns_another_number() -> None:
    hook = (
        "def both(module, grad_input, grad_output):\n    return grad_output * 2\nnet.register_full_backward_hook(both)"
    )
    found = only(NET, hook, "net(x.requires_grad_()).sum().backward()")
    assert found.names == ("both",) and spot(found.cause) == (2, 2) and "`grad_input`" in found.fixes[0].text


def test_an_error_in_a_hook_has_its_line_and_what_registered_it() -> None:
    hook = "def scaled(name):\n    def hook(grad):\n        return grad * table[name]\n    return hook\ntable = {}"
    found = only(NET, hook, "y = net(x)\ny.register_hook(scaled('y'))\ny.sum().backward()")
    assert found.headline == "`scaled.hook` raised KeyError while the gradients were computed."
    assert (
        spot(found.cause) == (2, 3)
        and "(In[3], line 2) registered it" in found.text
        and "`grad` is [4, 1]" in found.text
    )


def test_an_error_in_the_backward_of_a_function_has_its_line_and_shapes() -> None:
    own = (
        "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return x * x\n"
        "    @staticmethod\n    def backward(ctx, g):\n        x, = ctx.saved_tensors\n        return g @ x"
    )
    found = only(NET, own, "Own.apply(net(x)).sum().backward()")
    assert found.names[0] == "Own" and spot(found.cause) == (2, 9)
    assert "There `g` is [4, 1], and `x` is [4, 1]." in found.text
    assert "`Own` was applied in In[3], line 1" in found.text
