"""Errors with a kind of their own: the tensor and the line by name, also inside methods and helpers."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit


def only(*cells: str):
    (found,) = findings_of(*cells)
    return found


NET = "net = nn.Linear(3, 1)\nx = torch.ones(4, 3)"


def test_a_loss_of_several_values_that_a_helper_asks_for_a_number_is_named_as_the_caller_does() -> None:
    helper = "def log(value, store):\n    store.append(value.item())\nstore = []"
    found = only(NET, helper, "loss = (net(x) - 1).pow(2)\nlog(loss, store)")
    assert (found.headline, found.names) == ("`loss` is not one number.", ("loss",))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (3, 1)
    assert found.fixes[0].edits[0].new == ".mean()"


def test_a_number_of_plain_data_is_no_business_of_autograd() -> None:
    assert not findings_of("x = torch.ones(3)\nx.item()")


def test_a_computed_tensor_that_is_copied_is_named() -> None:
    keep = "import copy\ndef keep(out):\n    return copy.deepcopy(out)"
    found = only(NET, keep, "kept = keep(net(x))")
    assert found.headline == "`out` has a graph, and graphs are not copied."
    assert found.fixes[0].edits[0].new == "out.detach().clone()"


def test_a_comparison_of_indices_is_cut_where_the_indices_are_made() -> None:
    found = only(NET, "pred = net(x).argmax(1)\nloss = (pred != 1).sum()\nloss.backward()")
    assert found.kind == "no_grad" and found.cause is not None and found.cause.line == 1
    assert "`argmax` has no derivative" in found.text


def test_an_output_that_is_marked_as_not_differentiable_is_the_cut() -> None:
    function = (
        "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        y = x * 2\n"
        "        ctx.mark_non_differentiable(y)\n        return y\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g"
    )
    found = only(NET, function, "loss = F.apply(net(x)).sum()\nloss.backward()")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 5)


# ------------------------------------------------------------------ checkpoints

BLOCK = (
    "from torch.utils.checkpoint import checkpoint\n"
    "train = True\n"
    "def block(x):\n    y = net(x).tanh()\n    if train:\n        y = y.sigmoid() * y\n    return y\n"
    "x.requires_grad_()"
)


def test_the_first_tensor_that_differs_has_the_operation_that_saved_it() -> None:
    found = only(NET, BLOCK, "out = checkpoint(block, x, use_reentrant=False)\ntrain = False\nout.sum().backward()")
    assert "`SigmoidBackward0` (In[2], line 6) saved the" in found.text
    assert "`if train:` (In[2], line 5) decides whether that line runs" in found.text
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 5)
    assert found.names == ("block", "train")


def test_a_tensor_of_another_type_has_the_operation_that_saved_it() -> None:
    block = (
        "from torch.utils.checkpoint import checkpoint\n"
        "class Block(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.lin, self.calls = nn.Linear(3, 3), 0\n"
        "    def forward(self, x):\n        self.calls += 1\n        h = self.lin(x)\n"
        "        h = h.double() if self.calls > 1 else h\n        return (h * h).float()\n"
        "block = Block()\nx.requires_grad_()"
    )
    found = only(NET, block, "checkpoint(block, x, use_reentrant=False).sum().backward()")
    assert "`MulBackward0` (In[2], line 10; in `block`) saved the" in found.text
    assert "self.calls" in found.names


def test_saved_tensors_that_are_read_twice_in_a_checkpoint() -> None:
    function = (
        "from torch.utils.checkpoint import checkpoint\n"
        "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return x * x\n"
        "    @staticmethod\n    def backward(ctx, g):\n"
        "        x, = ctx.saved_tensors\n        y, = ctx.saved_tensors\n        return g * (x + y)\n"
        "x.requires_grad_()"
    )
    found = only(NET, function, "checkpoint(F.apply, x, use_reentrant=False).sum().backward()")
    assert found.headline == "Saved tensors of a checkpoint were read twice."
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 10)


# ------------------------------------------------------------------ one of several views


def test_a_view_that_a_loop_gives_is_cloned_where_the_views_are_made() -> None:
    cell = "rows = (net(x) * 2).unbind(0)\nfor i, row in enumerate(rows):\n    row += i\ntorch.stack(rows).sum().backward()"
    found = only(NET, cell)
    assert (found.names, found.fixes[0].id) == (("row",), "clone_before_inplace")
    assert found.fixes[0].edits[0].new == "[one.clone() for one in (net(x) * 2).unbind(0)]"


def test_a_view_of_a_leaf_is_written_under_no_grad() -> None:
    found = only("w = torch.ones(3, requires_grad=True)", "for part in w.split(1):\n    part -= 0.1")
    assert found.fixes[0].id == "under_no_grad" and "with torch.no_grad():" in found.fixes[0].edits[0].new


def test_a_view_under_a_name_of_its_own_is_computed_anew() -> None:
    found = only(NET, "a, b = torch.cat([net(x), net(x)], 1).chunk(2, 1)\na.mul_(b)\na.sum().backward()")
    assert found.fixes[0].id == "out_of_place" and found.fixes[0].edits[0].new == "a = a.mul(b)"


def test_a_view_by_index_is_written_where_the_whole_is_read_later() -> None:
    for later, ids in (
        ("h.sum().backward()", ["single_views", "out_of_place"]),
        ("row.sum().backward()", ["clone_before_inplace"]),
    ):
        found = only(NET, f"h = x * net.weight\nfor row in h:\n    row.mul_(2)\n{later}")
        assert [fix.id for fix in found.fixes] == ids


def test_copies_are_put_together_where_a_graph_needs_the_whole() -> None:
    body = "for row in h:\n        row -= 1\n    return h"
    (fix,) = only(NET, f"def shift(h):\n    {body}", "y = (x * net.weight).exp()\nshift(y).sum().backward()").fixes
    assert fix.id == "single_views"  # `h` has no name that says that `y` is saved: a trial tells
    (fix,) = only(NET, "y = (x * net.weight).exp()\nfor row in y:\n    row -= 1\ny.sum().backward()").fixes
    assert fix.id == "out_of_place" and fix.edits[-1].new == "\ny = torch.stack(pieces)"


def test_a_function_that_only_writes_to_its_argument_writes_to_the_views_of_that() -> None:
    helper = "def shift(h):\n    for row in h:\n        row += 1"
    (fix,) = only(NET, helper, "y = x * net.weight\nshift(y)\ny.sum().backward()").fixes
    assert fix.id == "single_views" and fix.edits[0].new == "[h[i] for i in range(len(h))]"


def test_a_leaf_that_a_function_gets_and_returns_is_copied() -> None:
    helper = "def shift(h):\n    for row in h:\n        row += 1\n    return h"
    (fix,) = only("w = torch.ones(3, 2, requires_grad=True)", helper, "shift(w).sum().backward()").fixes
    assert fix.id == "single_views" and "h = h.clone()" in [edit.new.strip() for edit in fix.edits]


def test_an_inference_tensor_that_an_object_keeps_is_named() -> None:
    room = (
        "class Room:\n    kept = None\n    @property\n    def far(self):\n        if self.kept is None:\n"
        "            self.kept = torch.ones(3)\n        return self.kept\nroom, w = Room(), torch.ones(3, requires_grad=True)"
    )
    (found,) = findings_of(room, "with torch.inference_mode():\n    room.far.sum()", "(w * room.far).sum().backward()")
    assert found.headline == "`room.kept` is an inference tensor." and found.tensor == "room.kept"


# ------------------------------------------------------------------ a leaf that is filled

FILL = """def fill(steps):
    outputs = torch.zeros(steps, 4, 1{flag}
    state = x
    for i in range(steps):
        state = [net(state).expand(4, 3)][0]
        outputs[i] = {written}
    return outputs
"""


def filled(flag: str = ", requires_grad=True)", written: str = "state[:, :1]", more: str = ""):
    return only(NET, FILL.format(flag=flag, written=written), f"out = fill(2){more}").fixes


def test_a_buffer_that_is_filled_with_computed_values_is_made_without_the_flag() -> None:
    for flag in (", requires_grad=True)", ").requires_grad_()"):
        (fix,) = filled(flag)
        assert fix.id == "plain_buffer" and fix.verified
        assert fix.edit[-1:] == ("+ outputs = torch.zeros(steps, 4, 1)",)
    (fix,) = filled(written="net(x)")
    assert fix.id == "plain_buffer"


def test_a_total_that_losses_are_added_to_is_made_without_the_flag() -> None:
    (fix,) = only(NET, "total = torch.zeros(1, requires_grad=True)\nfor one in x:\n    total += net(one)").fixes
    assert fix.id == "plain_buffer" and fix.edit[:2] == (
        "- total = torch.zeros(1, requires_grad=True)",
        "+ total = torch.zeros(1)",
    )


def test_a_step_by_hand_is_made_under_no_grad() -> None:
    (fix,) = only(
        "w = torch.ones(3, requires_grad=True)", "(w * w).sum().backward()\nw -= 0.1 * w.grad + 0.01 * w"
    ).fixes
    assert (fix.id, fix.verified) == ("under_no_grad", True)


def test_a_leaf_whose_grad_is_read_is_filled_as_a_copy() -> None:
    (fix,) = filled(more="\nout.backward()\nprint(outputs.grad)")
    assert (fix.id, fix.edits, fix.verified) == ("clone_before_inplace", (), False)


def test_a_leaf_that_is_filled_with_values_without_a_graph_stays_one() -> None:
    for written in ("x[:, :1]", "state[:, :1].detach()", "net.bias"):
        (fix,) = filled(written=written)
        assert (fix.id, fix.verified) == ("under_no_grad", True)


def test_a_leaf_of_an_optimizer_is_edited_where_no_backward_follows() -> None:
    made = "code = torch.ones(4, 3, requires_grad=True)\nopt = torch.optim.SGD([code], 0.1)\nrow = net(x).mean()"
    (fix,) = only(NET, made, "code[0] = row").fixes
    assert fix.id == "under_no_grad" and fix.price
    (fix,) = only(NET, made, "code[0] = row\ncode.sum().backward()").fixes
    assert fix.id == "clone_before_inplace"


def test_writes_that_do_not_follow_one_another_get_a_block_each() -> None:
    cell = "net.weight[0].mul_(\n    2,\n)\nprint('\\n')\nnet.bias[0] = 1\nnet.bias[1:] += 1"
    (fix,) = only("import torch\nnet = nn.Linear(3, 2)", cell).fixes
    assert [edit.new.count("no_grad") for edit in fix.edits] == [1, 1]


def test_text_of_several_lines_is_not_indented_by_a_block() -> None:
    (fix,) = only("import torch\nnet = nn.Linear(3, 2)", "net.weight[0].mul_(len('''a\nb'''))").fixes
    assert (fix.id, fix.edits) == ("under_no_grad", ())


# ------------------------------------------------------------------ `.grad` of what another line has computed

SALIENCY = """def saliency(image):
    net.zero_grad()
{calls}
    return image.grad.abs()
"""


def saliency(calls: str):
    return only(NET, SALIENCY.format(calls=calls), "y = (x.clone().requires_grad_() * 2).tanh()", "saliency(y)").fixes


def test_the_grad_of_a_computed_argument_is_asked_for_before_the_call() -> None:
    (fix,) = saliency("    net(image).sum().backward()")
    assert (fix.id, fix.verified) == ("retain_grad", True)
    assert fix.edit[:1] == ("+ image.retain_grad()",) and "backward()" in fix.edit[1]


def test_it_is_not_asked_for_where_the_call_may_be_of_another_tensor() -> None:
    for calls in (
        "    for _ in range(1):\n        net(image).sum().backward()",
        "    net(image).sum().backward()\n    image = image * 2",
    ):
        assert not any(fix.edits for fix in saliency(calls))


@pytest.mark.parametrize(
    ("kept", "memo"),
    [
        ("self.state", "{id(self.state): self.state.detach().clone()}"),
        ("self.seen", "{id(one): one.detach().clone() for one in (*self.seen,)}"),
    ],
)
def test_the_copy_of_an_object_gets_values_in_place_of_what_was_computed(kept, memo):
    cell = (
        "import copy\nclass Env:\n    def __init__(self, w):\n        self.w, self.state, self.seen = w, None, None\n"
        f"    def run(self, x):\n        new = self.w * x\n        {kept} = new if {kept[-4:] == 'tate'} else [new, new * 2]\n"
        "    def ahead(self):\n        return copy.deepcopy(self)\n"
        "env = Env(torch.ones(2, requires_grad=True))\nenv.run(3.0)"
    )
    (found,) = findings_of(cell, "env.ahead()")
    assert text_edit.new_text(cell, found.fixes[0].edits).strip() == f"return copy.deepcopy(self, {memo})"
    assert found.fixes[0].id == "detach" and "goes back" not in found.text


def test_a_hook_on_a_frozen_parameter_is_not_registered_rather_than_the_parameter_trained() -> None:
    cells = ("net = nn.Linear(3, 1).requires_grad_(False)\nw = net.weight", "w.register_hook(print)")
    (found,) = findings_of(*cells)
    assert "is a parameter that is frozen" in found.text
    assert found.fixes[0].id == "skip_none" and not any("requires_grad_" in line for line in found.fixes[0].edit)


def test_a_module_hook_of_the_old_kind_that_returns_too_few() -> None:
    cells = (
        "class Add(nn.Module):\n    def forward(self, a):\n        return a + a.tanh()",
        "net, x = Add(), torch.ones(3, requires_grad=True)",
        "def hook(module, given, out):\n    return (out[0] * 2,)\nnet.register_backward_hook(hook)",
        "net(x).sum().backward()",
    )
    (found,) = findings_of(*cells)
    assert "of an old kind" in found.text and found.fixes[0].id == "full_backward_hook"
    fixed = text_edit.apply(cells[2], found.fixes[0].edits)
    assert "net.register_full_backward_hook(hook)" in fixed and not findings_of(*cells[:2], fixed, cells[3])


def test_one_of_several_views_is_copied_before_a_write_by_index() -> None:
    cells = (
        "x = torch.ones(4, 3, requires_grad=True) * 2",
        "a, b = x.chunk(2, dim=0)\nb = b.reshape(-1)\nb[b > 1] = 0.5\nout = (a.sum() / b).sum()",
    )
    (found,) = findings_of(*cells)
    fixed = text_edit.apply(cells[1], found.fixes[0].edits)
    assert "b = b.clone()\nb[b > 1] = 0.5" in fixed and not findings_of(cells[0], fixed)


def test_a_checkpoint_that_is_prepared_by_partial_is_found() -> None:
    prepared = (
        "from functools import partial\nfrom torch.utils.checkpoint import checkpoint\n"
        "saving = partial(checkpoint, lambda a: net(a).tanh(), use_reentrant=True)\nx.requires_grad_()"
    )
    found = only(NET, prepared, "torch.autograd.grad(saving(x).sum(), x)")
    assert [(edit.cell, edit.start[0], edit.new) for edit in found.fixes[0].edits] == [(2, 3, "False")]


def test_a_leaf_made_of_what_a_call_returns_would_be_used_by_nothing() -> None:
    scale = "w = torch.ones(2, requires_grad=True)\ndef scale():\n    return w.exp()"
    found = only(scale, "opt = torch.optim.SGD([scale(), net.weight], 0.1)".replace("net.weight", "w"))
    assert found.headline == "What `scale()` returns is no leaf."
    assert [(fix.id, fix.edits) for fix in found.fixes] == [("leaf", ())]
    assert "the leaf that what `scale()` returns is computed from" in found.fixes[0].text


def test_indices_of_an_embedding_are_not_made_floating_point() -> None:
    net = "table = nn.Embedding(5, 2)\nids = torch.tensor([1, 2])"
    found = only(net, "def saliency(ids):\n    ids.requires_grad_()\n    return table(ids).sum()\nsaliency(ids)")
    assert [(fix.id, fix.edits) for fix in found.fixes] == [("leaf", ())]
    assert "`e = embedding(ids).detach().requires_grad_()`" in found.fixes[0].text
    found = only(net, "n = torch.tensor([1, 2])\nn.requires_grad_()")
    assert [fix.id for fix in found.fixes] == ["float_dtype"]
