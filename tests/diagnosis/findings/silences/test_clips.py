"""Clips that miss the gradients: those of a scaled loss, and those that a used-up generator no longer gives."""

import pytest
from told import findings_of, said

from graphwidget.diagnosis.source.edits import text_edit

NET = (
    "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nx = torch.randn(8, 3)"
)

# ------------------------------------------------------------------ the scale of a scaler

SCALER = "scaler = torch.amp.GradScaler('cpu', enabled={})"
SCALED = (
    "for _ in range(3):\n    opt.zero_grad()\n    scaled = scaler.scale(net(x).pow(2).mean())\n    scaled.backward()\n"
    "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    scaler.step(opt)\n    scaler.update()\n"
)
METHODS = """class Trainer:
    def compute(self):
        scaler.scale(net(x).pow(2).mean()).backward()
    def descend(self):
        nn.utils.clip_grad_value_(net.parameters(), 0.5)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
trainer = Trainer()"""


def test_a_clip_of_scaled_gradients() -> None:
    (found,) = findings_of(NET, SCALER.format(True), SCALED)
    assert found.headline == "Gradients are clipped while they are still multiplied by the scale of `scaler`."
    assert found.severity == "warning" and found.cause is not None and found.cause.line == 5
    assert found.fixes[0].edits[0].new.strip() == "scaler.unscale_(opt)"


def test_a_clip_in_another_method_than_the_backward() -> None:
    (found,) = findings_of(
        NET, SCALER.format(True), METHODS, "for _ in range(3):\n    trainer.compute()\n    trainer.descend()"
    )
    assert found.cause is not None and found.cause.source.startswith("nn.utils.clip_grad_value_")
    assert found.fixes[0].edits[0].new.strip() == "scaler.unscale_(opt)"


def test_which_optimizer_a_clip_is_for_is_not_guessed() -> None:
    other = "part = nn.Linear(3, 1)\nmore = torch.optim.SGD(part.parameters(), lr=0.1)"
    loop = SCALED.replace("net(x)", "(net(x) + part(x))").replace(
        "zero_grad()\n", "zero_grad()\n    more.zero_grad()\n"
    )
    (found,) = findings_of(
        NET, other, SCALER.format(True), loop.replace("    scaler.u", "    scaler.step(more)\n    scaler.u")
    )
    assert found.fixes[0].edits == () and "the optimizer that it is for" in found.fixes[0].text


def test_an_unscaling_behind_the_clip_is_too_late() -> None:
    late = SCALED.replace("    scaler.step", "    scaler.unscale_(opt)\n    scaler.step")
    (found,) = findings_of(NET, SCALER.format(True), late)
    assert found.headline.startswith("Gradients are clipped while")


@pytest.mark.parametrize(
    ("on", "loop"),
    [
        (False, SCALED),  # a scaler that is switched off does not scale
        (True, SCALED.replace("    nn.utils", "    scaler.unscale_(opt)\n    nn.utils")),
        (
            True,
            "def prepare():\n    scaler.unscale_(opt)\n"
            + SCALED.replace("    nn.utils", "    prepare()\n    nn.utils"),
        ),
        (True, SCALED.replace("    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n", "")),
    ],
)
def test_of_correct_clips_nothing_is_said(on: bool, loop: str) -> None:
    assert not said(NET, SCALER.format(on), loop)


# ------------------------------------------------------------------ a generator that is used up

CLIP = """def clip(weights, limit):
    total = torch.sqrt(sum((w.grad ** 2).sum() for w in weights))
    if total > limit:
        for w in weights:
            w.grad.mul_(limit / total)"""
LOOP = (
    "for _ in range(3):\n    opt.zero_grad()\n    net(x).pow(2).mean().backward()\n    clip({}, 1e-3)\n    opt.step()\n"
)
ONCE = "weights = filter(lambda one: one.requires_grad, net.parameters())\nopt = torch.optim.SGD({}, lr=0.1)"
CLIPPED = (
    "for _ in range(3):\n    opt.zero_grad()\n    net(x).pow(2).mean().backward()\n"
    "    nn.utils.clip_grad_norm_(weights, 1e-3)\n    opt.step()\n"
)


def test_a_generator_that_a_function_goes_through_twice() -> None:
    (found,) = findings_of(NET, CLIP, LOOP.format("net.parameters()"))
    assert found.headline == "`weights` is used up when `for w in weights:` reads it."
    assert found.severity == "warning" and found.cause is not None and found.cause.line == 4
    assert "".join(edit.new for edit in found.fixes[0].edits) == "list()"


def test_a_generator_that_the_optimizer_has_used_up() -> None:
    (found,) = findings_of(NET, ONCE.format("weights"), CLIPPED)
    assert found.names == ("weights",) and found.fixes[0].edits


@pytest.mark.parametrize(
    ("call", "better"),
    [
        ("clip(w for w in net.parameters())", "clip([w for w in net.parameters()])"),
        ("clip((w for w in net.parameters()), 1e-3)", "clip([w for w in net.parameters()], 1e-3)"),
        ("clip(limit=1e-3, weights=iter(net.parameters()))", "clip(limit=1e-3, weights=list(iter(net.parameters())))"),
    ],
)
def test_the_edit_makes_a_list_of_what_is_handed_in(call: str, better: str) -> None:
    loop = LOOP.replace("clip({}, 1e-3)", call)
    (found,) = findings_of(NET, CLIP.replace("limit)", "limit=1e-3)"), loop)
    assert text_edit.apply(loop, found.fixes[0].edits) == loop.replace(call, better)


@pytest.mark.parametrize(
    "cells",
    [
        (CLIP, LOOP.format("list(net.parameters())")),
        (CLIP, LOOP.format("opt.param_groups[0]['params']")),
        (CLIP.replace("    if", "    weights = net.parameters()\n    if"), LOOP.format("net.parameters()")),
        (
            CLIP.replace("(weights, limit):", "(limit):\n    weights = net.parameters()").replace(
                "    if", "    weights = net.parameters()\n    if"
            ),
            LOOP.format("net").replace("net, ", ""),
        ),
        (CLIP.replace("    if", "    weights = list(weights)\n    if"), LOOP.format("list(net.parameters())")),
        (
            "class Net(nn.Module):\n    def parameters(self):\n        return list(net[0].parameters())",
            "net = nn.Linear(3, 1)",
        ),
        (ONCE.replace("filter", "list(filter").replace("rs())", "rs()))").format("weights"), CLIPPED),
        (
            ONCE.format("net.parameters()").replace("weights = ", "kept = "),
            CLIPPED.replace("weights", "net.parameters()"),
        ),
        ("weights = net.parameters()\nfirst = next(weights)", LOOP.format("[]").replace("    clip([], 1e-3)\n", "")),
        (CLIP + "\nwhole = [*net.parameters()]", LOOP.format("whole")),
    ],
)
def test_of_what_can_be_read_twice_nothing_is_said(cells: tuple[str, ...]) -> None:
    assert not said(NET, *cells)


def test_a_class_whose_parameters_are_a_list_is_no_generator() -> None:
    own = "class Own:\n    def parameters(self):\n        return [w for w in net.parameters()]\nown = Own()"
    assert not said(NET, own, CLIP, LOOP.format("own.parameters()"))


# ------------------------------------------------------------------ a group of an optimizer that is empty so

GROUPS = """def describe(ps, verbose=False):
    BODY
weights = MADE
print(describe(weights))
opt = torch.optim.SGD([{"params": weights, "lr": 0.2}, {"params": net[2].parameters()}], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
"""
COUNTED = "return sum(p.numel() for p in ps)"


def test_parameters_that_were_counted_are_gone_when_a_group_gets_them() -> None:
    cell = GROUPS.replace("BODY", COUNTED).replace("MADE", "net[0].parameters()")
    (found,) = (one for one in findings_of(NET, cell) if "used up" in one.headline)
    assert found.headline.startswith("`weights` is used up when `opt = torch.optim.SGD(")
    assert "`print(describe(weights))`" in found.text and found.severity == "warning"
    assert "".join(edit.new for edit in found.fixes[0].edits) == "list()"


@pytest.mark.parametrize(
    ("body", "made"),
    [
        (COUNTED, "list(net[0].parameters())"),
        (f"if verbose:\n        {COUNTED}", "net[0].parameters()"),
        (f"if not verbose:\n        return\n    {COUNTED}", "net[0].parameters()"),
        ("return type(ps)", "net[0].parameters()"),
    ],
)
def test_a_function_that_may_take_none_uses_up_nothing(body: str, made: str) -> None:
    assert not said(NET, GROUPS.replace("BODY", body).replace("MADE", made))


def test_other_dicts_with_that_key_are_no_groups() -> None:
    assert not said(
        NET,
        "names = map(str, range(3))\nprint(list(names))\nsettings = {'params': names}",
        LOOP.replace("    clip({}, 1e-3)\n", ""),
    )
