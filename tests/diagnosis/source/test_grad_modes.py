"""Where a text switches grad mode off: surely, perhaps, or not at all."""

import pytest

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.pytorch import grad_modes


def around(text, line):
    switch = grad_modes.around(text, source.statements_at(text, line)[-1])
    return None if switch is None else (switch.outer.lineno, switch.text, switch.off)


@pytest.mark.parametrize(
    ("head", "off"),
    [
        ("torch.no_grad()", True),
        ("no_grad()", True),
        ("torch.inference_mode()", True),
        ("torch.set_grad_enabled(False)", True),
        ("torch.set_grad_enabled(train)", None),
        ("torch.inference_mode(mode=not train)", None),
        ("nullcontext() if train else torch.no_grad()", None),
        ("chosen(torch.no_grad)", None),
        ("torch.set_grad_enabled(True)", "on"),
        ("torch.enable_grad()", "on"),
        ("torch.inference_mode(False)", "on"),
        ("ddp.no_sync()", "on"),
        ("self.no_gradient_checkpointing()", "on"),
    ],
)
def test_a_block_switches_it_off_surely_or_perhaps(head, off):
    assert around(f"with {head}:\n    y = f(x)\n", 2) == (None if off == "on" else (1, head, off))


def test_the_innermost_that_decides_is_reported():
    text = "with torch.no_grad():\n    with torch.enable_grad():\n        y = f(x)\n    z = f(y)\n"
    assert around(text, 3) is None
    assert around(text, 4) == (1, "torch.no_grad()", True)
    assert around("with torch.no_grad(), torch.autocast('cpu'):\n    y = f(x)\n", 2) == (1, "torch.no_grad()", True)


def test_a_decorator_counts_for_the_body_and_not_for_functions_defined_in_it():
    text = "@torch.no_grad()\ndef f(x):\n    y = g(x)\n    def inner(z):\n        return z * 2\n    return y\n"
    assert around(text, 3) == (2, "torch.no_grad()", True)
    assert around(text, 5) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("torch.set_grad_enabled(phase == 'train')", ("phase == 'train'", False)),
        ("torch.inference_mode(mode=test)", ("test", True)),
        ("nullcontext() if train else torch.no_grad()", ("train", False)),
        ("torch.no_grad() if test else nullcontext()", ("test", True)),
        ("torch.no_grad()", None),
        ("chosen(torch.no_grad)", None),
    ],
)
def test_what_decides_is_reported_with_the_answer_that_switches_it_off(text, found):
    assert grad_modes.condition(text) == found
