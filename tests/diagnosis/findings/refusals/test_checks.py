"""Checks of PyTorch's: what is said, the line that asks for what is checked, and the names."""

from dataclasses import replace

import pytest
from told import findings_of, record_of

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.model import Lineage, MeasuredLeaf, TextLine

FUNCTION = (
    "class F(torch.autograd.Function):\n"
    "    @staticmethod\n    def forward(ctx, x):\n        {forward}\n"
    "    @staticmethod\n    def backward(ctx, g):\n        return g\n"
)
X = "x = torch.ones(4, 3, requires_grad=True)\nnet = nn.Linear(3, 1)"


def function(forward: str) -> str:
    return FUNCTION.replace("{forward}", forward.replace("\n", "\n        "))


# Cells, a part of the headline, and the line of the last cell but one, or of the last, that is the cause.
FAILED = {
    "a phase": (
        (
            "a = torch.randn(3, 3, dtype=torch.cfloat, requires_grad=True)\nu = torch.linalg.svd(a)[0]\nu.real.sum().backward()",
        ),
        "a factor that `LinalgSvd` leaves open",
        (1, 2),
    ),
    "QR of a mode without Q": (
        ("a = torch.randn(4, 3, requires_grad=True)\nq, r = torch.linalg.qr(a, mode='r')\nr.sum().backward()",),
        "has no derivative in this mode",
        (1, 2),
    ),
    "an input that is modified and not returned": (
        (X, function("x.mul_(2)\nctx.mark_dirty(x)\nreturn x.clone()"), "F.apply(x * 1)"),
        "is not what it returned",
        (2, 5),
    ),
    "a hook that returns": (
        (X, "net.weight.register_post_accumulate_grad_hook(lambda p: p.grad)", "net(x).sum().backward()"),
        "runs after `.grad` was written returns something",
        (2, 1),
    ),
    "fewer gradients than roots": (
        (X, "y = x * 2\ntorch.autograd.grad([y, y.sum()], [x], grad_outputs=[torch.ones_like(y)])"),
        "not one gradient for each root",
        (2, 2),
    ),
    "no inputs": ((X, "net(x).sum().backward(inputs=[])"), "asks for the gradients of nothing", (2, 1)),
    "a module as input": ((X, "torch.autograd.grad(net(x).sum(), [net])"), "something that is no tensor", (2, 1)),
    "a number as root": ((X, "torch.autograd.backward([net(x).sum().item()])"), "begins at something", (2, 1)),
    "a view detached in place": ((X, "y = (x * 2)[:2]\ny.detach_()"), "detaches a view in place", (2, 2)),
    "Python on each number": ((X, "y = x * 2\ny.apply_(abs)"), "computes values by Python", (2, 2)),
    "an optimizer of nothing": (
        (X, "some = filter(None, [])\ntorch.optim.SGD(some, lr=0.1)"),
        "makes an optimizer of nothing",
        (2, 2),
    ),
    "SparseAdam with a dense gradient": (
        (X, "opt = torch.optim.SparseAdam(net.parameters())", "net(x).sum().backward()\nopt.step()"),
        "takes sparse gradients only",
        (2, 1),
    ),
    "weight decay of a sparse gradient": (
        (
            "emb = nn.Embedding(5, 2, sparse=True)",
            "opt = torch.optim.SGD(emb.parameters(), lr=0.1, weight_decay=0.1)",
            "emb(torch.tensor([1])).sum().backward()\nopt.step()",
        ),
        "adds dense values to a sparse gradient",
        (2, 1),
    ),
    "a norm of a sparse gradient": (
        (
            "emb = nn.Embedding(5, 2, sparse=True)",
            "emb(torch.tensor([1])).sum().backward()\nnn.utils.clip_grad_norm_(emb.parameters(), 1.0)",
        ),
        "is not written for sparse tensors",
        (1, 1),
    ),
    "a negative slope in place": (
        (X, "act = nn.LeakyReLU(-0.1, inplace=True)", "act(x * 1).sum().backward()"),
        "cannot have a negative slope",
        (2, 1),
    ),
    "complex and real": (
        (X, "y = x * 2\ny.backward(torch.ones(4, 3, dtype=torch.cfloat))"),
        "the gradient is complex",
        (2, 2),
    ),
    "a strict jacobian": (
        (
            "from torch.autograd.functional import jacobian",
            "jacobian(lambda x, y: x, (torch.ones(2), torch.ones(2)), strict=True)",
        ),
        "does not depend on an input",
        (2, 1),
    ),
}


@pytest.mark.parametrize("what", FAILED)
def test_it_is_explained_with_the_line_that_asks_for_it(what: str) -> None:
    cells, headline, cause = FAILED[what]
    (found,) = findings_of(*cells)
    assert headline in found.headline and not found.unexplained and found.severity == "error"
    assert found.cause is not None and (found.cause.cell, found.cause.line) == cause
    assert len(found.fixes) == 1


def test_a_second_derivative_of_a_compiled_function_names_the_first_and_the_compile() -> None:
    cells = (
        "net = torch.compile(nn.Sequential(nn.Linear(3, 2), nn.Tanh()), backend='aot_eager')\nx = torch.ones(4, 3)",
        "x.requires_grad_()\n(g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)",
        "g.pow(2).sum().backward()",
    )
    (found,) = findings_of(*cells)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 2)
    assert "In[1], line 1" in found.text and found.fixes[0].id == "differentiable_backward"


# ------------------------------------------------------------------ GradScaler

SCALER = "scaler = torch.amp.GradScaler('cpu')\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"


def test_a_backward_that_is_only_named_leaves_nothing_to_scale() -> None:
    (found,) = findings_of(X, SCALER, "scaler.scale(net(x).sum()).backward\nscaler.step(opt)")
    assert found.kind == "no_grad" and found.names == ("opt",)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (3, 1)
    assert found.fixes[0].edits[0].new == "scaler.scale(net(x).sum()).backward()"


def test_the_cut_that_leaves_an_optimizer_without_gradients_is_the_cause() -> None:
    cells = (
        "head = nn.Linear(1, 1)",
        "loss = head(net(x).detach()).sum()\nscaler.scale(loss).backward()\nscaler.step(opt)",
    )
    (found,) = findings_of(X, SCALER, *cells)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (4, 1)


def test_what_clears_the_gradients_before_the_step_is_the_cause() -> None:
    cell = "scaler.scale(net(x).sum()).backward()\nopt.zero_grad()\nscaler.step(opt)"
    (found,) = findings_of(X, SCALER, cell)
    assert found.cause is not None and found.cause.line == 2 and found.fixes[0].id == "zero_grad_or_step_order"


@pytest.mark.parametrize("again", ["scaler.unscale_(opt)", "scaler.step(opt)"])
def test_what_needs_an_update_between_says_so(again: str) -> None:
    (found,) = findings_of(X, SCALER, f"scaler.scale(net(x).sum()).backward()\n{again}\n{again}")
    assert "without `scaler.update()` between" in found.headline and "never called" in found.text


HALF = (
    "net = nn.Linear(3, 1)\n{}\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nscaler = torch.amp.GradScaler('cpu')"
)
HALF_PASS = "scaler.scale(net(torch.ones(4, 3){}).float().sum()).backward()\nscaler.unscale_(opt)"


@pytest.mark.parametrize(
    ("cast", "line"),
    [
        ("net.half()", 2),
        ("kind = torch.float16\nnet.to(device='cpu', dtype=kind)", 3),
        ("net = net.to(torch.half)", 2),
    ],
)
def test_weights_of_float16_under_a_scaler_are_told_with_the_line_that_made_them_so(cast: str, line: int) -> None:
    (found,) = findings_of(HALF.format(cast), HALF_PASS.format(".half()"))
    assert "met gradients of float16" in found.headline
    assert (found.cause or found.made_at).cell == 1 and (found.cause or found.made_at).line == line


def test_of_two_lines_that_cast_to_float16_none_is_named() -> None:
    (found,) = findings_of(HALF.format("net.half()\nnet.float()\nnet.half()"), HALF_PASS.format(".half()"))
    assert "are float16 here" in found.text and found.made_at.cell == 2


def test_a_scaler_without_gradients_names_the_line_that_made_the_loss_anew() -> None:
    cells = (
        "def measure(pred):\n    value = pred.sum().item()\n"
        "    return torch.tensor([value], requires_grad=True, device=pred.device)",
        "loss = measure(net(x)).mean()\nscaler.scale(loss).backward()\nscaler.step(opt)",
    )
    record = record_of(X, SCALER, *cells)
    (found,) = diagnose(record)
    assert "value = pred.sum().item()" in found.text and "cuts the graph" in found.text
    made = MeasuredLeaf(record.calls[-1].n, "tensor", (TextLine(3, None, 3),))
    (found,) = diagnose(replace(record, lineage=Lineage(None, made=(made,))))
    assert "makes a new leaf" in found.text and "had left the graph before" in found.text
    assert (found.cause or found.made_at).line == 2


def test_a_scaler_that_is_used_as_it_should_be_is_no_matter() -> None:
    loop = (
        "for i in range(4):\n    scaler.scale(net(x).pow(2).sum() / 2).backward()\n    if i % 2:\n"
        "        scaler.unscale_(opt)\n        scaler.step(opt)\n        scaler.update()\n        opt.zero_grad()"
    )
    assert not findings_of(X, SCALER, loop)


# ------------------------------------------------------------------ what has a module of its own


def test_a_generator_that_has_run_out_is_kept_in_a_list() -> None:
    cell = (
        "some = (p for p in net.parameters())\nprint(sum(p.numel() for p in some))\nopt = torch.optim.SGD(some, lr=0.1)"
    )
    (found,) = findings_of(X, cell)
    assert found.cause is not None and found.cause.line == 2 and found.names == ("some",)
    assert found.fixes[0].edits[0].new == "list((p for p in net.parameters()))"


def test_layers_in_a_plain_list_are_registered() -> None:
    cells = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.parts = [nn.Linear(2, 2)]\n"
        "small = Net()",
        "opt = torch.optim.SGD(small.parameters(), lr=0.1)",
    )
    (found,) = findings_of(*cells)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 4)
    assert found.fixes[0].edits[0].new == "nn.ModuleList([nn.Linear(2, 2)])" and found.names == ("small", "parts")


def test_a_parameter_that_grew_is_named_with_the_line_that_did_it() -> None:
    cells = (
        "fc = nn.Linear(3, 2)\nopt = torch.optim.SGD(fc.parameters(), lr=0.1)",
        "loss = fc(torch.ones(4, 3)).sum()\nloss.backward()",
        "fc.weight.data = torch.zeros(3, 3)\nfc.bias.data = torch.zeros(3)",
        "fc(torch.ones(4, 3)).sum().backward()",
    )
    (found,) = findings_of(*cells)
    assert "fc." in found.headline and "has another shape than when it was first used" in found.headline
    assert found.cause is not None and found.cause.cell == 3


def test_inference_mode_is_seen_through_enable_grad() -> None:
    cells = (
        "def residual(t):\n    with torch.enable_grad():\n        t.requires_grad_()\n        u = net(t)\n"
        "        return torch.autograd.grad(u.sum(), t)[0]",
        "@torch.inference_mode()\ndef validate(x):\n    return residual(x.clone())",
        "validate(torch.ones(4, 3))",
    )
    (found,) = findings_of(X, *cells)
    assert "`@torch.inference_mode()` of `validate`" in found.text and "does not switch it off" in found.text
    assert found.fixes[0].edits[0].new == "torch.no_grad()"


def test_tensors_that_a_function_returns_in_a_list_are_the_cut() -> None:
    (found,) = findings_of(X, function("return [x * 2, x * 3]"), "a, b = F.apply(x)\n(a * b).sum().backward()")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 4)
    assert found.fixes[0].edits[0].new == "x * 2, x * 3"


def test_a_checkpoint_that_draws_other_numbers_is_told_to_keep_them() -> None:
    block = (
        "from torch.utils.checkpoint import checkpoint\n"
        "def block(x):\n    if torch.rand(()) < 0.5:\n        x = x.sigmoid() * x\n    return x.exp()"
    )
    loop = "for i in range(20):\n    checkpoint(block, x * 1, use_reentrant=False, preserve_rng_state=False).sum().backward()"
    (found,) = findings_of(X, block, loop)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 3)
    assert found.fixes[0].edits[0].new == "True" and "preserve_rng_state" in found.fixes[0].text


ROUTED = """from torch.utils.checkpoint import checkpoint
class Router(nn.Module):
    def forward(self, x):
        return x + DRAWN
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = Router()
    def forward(self, x):
        return x.flatten()[self.router(x).flatten() > 0.5].exp()"""
ROUTING = """layer = Experts()
for i in range(20):
    checkpoint(layer, x * 1, use_reentrant=False, preserve_rng_state=False).sum().backward()"""


@pytest.mark.parametrize(
    ("drawn", "place"), [("torch.randn_like(x)", (2, 4)), ("-nn.functional.dropout(torch.ones_like(x))", (3, 3))]
)
def test_what_draws_may_be_in_a_module_that_the_checkpointed_one_has(drawn: str, place: object) -> None:
    (found,) = findings_of(X, ROUTED.replace("DRAWN", drawn), ROUTING)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == place
    assert found.fixes[0].edits[0].new == "True" and "lets the second run draw other numbers" in found.text


def test_a_checkpoint_that_asks_pythons_generator_is_told_to_ask_that_of_torch() -> None:
    block = (
        "import random\nrandom.seed(1)\nfrom torch.utils.checkpoint import checkpoint\n"
        "def drop():\n    return random.random() < 0.5\n"
        "def block(x):\n    if drop():\n        return x\n    return x.exp().sin()"
    )
    loop = "for i in range(20):\n    checkpoint(block, x * 1, use_reentrant=False).sum().backward()"
    (found,) = findings_of(X, block, loop)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 5)
    assert found.fixes[0].edits[0].new == "torch.rand(()).item()"


@pytest.mark.parametrize(
    ("made", "line", "drawn"),
    [
        ("np.random.default_rng(0)", "if one.random() < 0.5:", True),
        # These values were drawn before.
        ("torch.tensor(np.random.rand(3))", "if one.sum() < 0 or n[0] % 2 < 1:", False),
    ],
)
def test_an_object_that_draws_numbers_is_no_tensor_made_of_some(made: str, line: str, drawn: bool) -> None:
    setting = f"import numpy as np\nfrom torch.utils.checkpoint import checkpoint\nn = [0]\none = {made}"
    block = f"def block(x):\n    n[0] += 1\n    {line}\n        return x\n    return x.exp().sin()"
    loop = "for i in range(40):\n    checkpoint(block, x * 1, use_reentrant=False).sum().backward()"
    (found,) = findings_of(X, setting, block, loop)
    assert ("draws random numbers that no checkpoint restores" in found.text) is drawn


def test_a_keyword_of_a_reentrant_checkpoint_is_named() -> None:
    block = "from torch.utils.checkpoint import checkpoint\ndef block(x, mask=None):\n    return x * mask"
    (found,) = findings_of(X, block, "checkpoint(block, x, mask=x, use_reentrant=True)")
    assert found.headline == "A re-entrant checkpoint takes no `mask`." and found.fixes[0].edits[0].new == "False"


def test_a_frozen_input_of_backward_is_named_once() -> None:
    (found,) = findings_of(X, "net.requires_grad_(False)", "(net(x) * x).sum().backward(inputs=list(net.parameters()))")
    assert found.headline == "`list(net.parameters())` does not require grad."


def test_statistics_of_a_batch_norm_are_written_in_a_transform() -> None:
    cells = ("norm = nn.BatchNorm1d(3)", "torch.func.grad(lambda x: norm(x).sum())(torch.ones(4, 3))")
    (found,) = findings_of(*cells)
    assert found.headline.startswith("`norm` (a `BatchNorm1d`) writes to its buffer `num_batches_tracked`")
    assert [edit.new for edit in found.fixes[0].edits] == [", track_running_stats=False"] and found.fixes[0].choice


def test_an_embedding_that_shortens_its_rows_is_what_modified_its_weight() -> None:
    cells = (
        "emb = nn.Embedding(10, 3, max_norm=1.0)\nw = nn.Parameter(torch.randn(3, 5))",
        "a = emb.weight @ w\nb = emb(torch.tensor([1, 2])) @ w\nloss = a.sum() + b.sum()\nloss.backward()",
    )
    (found,) = findings_of(*cells)
    assert found.kind == "inplace" and "has `max_norm`" in found.text
    assert found.modified_at is not None and (found.modified_at.cell, found.modified_at.line) == (2, 2)


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("y = (x * 2)[:2]\ny.detach_()", True),
        ("kept = [(x * 2)[:2]]\nfor y in kept:\n    y.detach_()", False),
        ("def cut(y):\n    y.detach_()\ncut((x * 2)[:2])", False),
    ],
)
def test_another_name_for_what_is_kept_elsewhere_is_not_rebound(line: str, edited: bool) -> None:
    (found,) = findings_of(X, line)
    assert "detaches a view in place" in found.headline and bool(found.fixes[0].edits) is edited
