"""Hooks for saved tensors that give back something else than what was saved."""

from __future__ import annotations

import pytest
from told import findings_of, with_unpacked

from graphwidget.diagnosis.source.edits import text_edit

HOOKS = "from torch.autograd.graph import saved_tensors_hooks\nnet, x = nn.Linear(4, 3), torch.ones(5, 4)"
PASS = "with saved_tensors_hooks(pack, unpack):\n    loss = net(x).pow(2).mean()\nloss.backward()"
HALF = "def pack(t):\n    return t.half()\ndef unpack(t):\n    return t"
MADE = "saved = {}\ndef pack(t):\n    saved[len(saved)] = t\n    return len(saved) - 1\n"


def test_another_type_is_told_with_both_functions_and_mended() -> None:
    (found,) = with_unpacked(HOOKS, HALF, PASS)
    assert found.headline == "`unpack` does not give back the type of what was saved."
    assert "`unpack` (In[2], line 3" in found.text and "that `pack` (In[2], line 1" in found.text
    assert "gave back a float16 tensor of shape (5, 4) for a float32 tensor" in found.text
    assert "(In[3], line 1) made the two hooks" in found.text
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 3)
    fixed = text_edit.apply(HALF, found.fixes[0].edits)
    assert "return t.half(), t.dtype" in fixed and "return t[0].to(t[1])" in fixed
    assert not with_unpacked(HOOKS, fixed, PASS)


def test_lambdas_of_one_line_are_mended() -> None:
    lines = (
        "with saved_tensors_hooks(lambda t: t.half(), lambda t: t):\n    loss = net(x).pow(2).mean()\nloss.backward()"
    )
    (found,) = with_unpacked(HOOKS, lines)
    fixed = text_edit.apply(lines, found.fixes[0].edits)
    assert "lambda t: (t.half(), t.dtype), lambda t: t[0].to(t[1])" in fixed and not with_unpacked(HOOKS, fixed)


@pytest.mark.parametrize(
    ("hooks", "headline", "said"),
    [
        (
            "def pack(t):\n    return t.flatten()\ndef unpack(t):\n    return t",
            "`unpack` does not give back the shape of what was saved.",
            "shape (15,) for a float32 tensor of shape (5, 3)",
        ),
        (
            "def pack(t):\n    return t.to('meta')\ndef unpack(t):\n    return t",
            "`unpack` does not give back the device of what was saved.",
            "on meta for a float32 tensor of shape (5, 3) on cpu",
        ),
        (f"{MADE}def unpack(n):\n    saved.pop(n)", "`unpack` does not give back a tensor.", "gave back None for"),
        (
            "def pack(t):\n    return (t * 127).to(torch.int8)\ndef unpack(t):\n    return t",
            "`unpack` does not give back the type of what was saved.",
            "gave back an int8 tensor",
        ),
    ],
)
def test_what_differs_is_told(hooks: str, headline: str, said: str) -> None:
    (found,) = with_unpacked(HOOKS, hooks, PASS)
    assert found.headline == headline and said in found.text


def test_numbers_that_were_scaled_are_not_only_converted_back() -> None:
    scaled = "def pack(t):\n    return (t * 16).half()\ndef unpack(t):\n    return t"
    (found,) = with_unpacked(HOOKS, scaled, PASS)
    assert found.fixes[0].id == "give_back_as_saved" and not found.fixes[0].edits


def test_functions_that_the_program_calls_itself_are_not_edited() -> None:
    (found,) = with_unpacked(HOOKS, f"{HALF}\nsmall = pack(x)", PASS)
    assert not found.fixes[0].edits


def test_without_the_measurement_nothing_is_said_of_types() -> None:
    (found,) = findings_of(HOOKS, HALF, PASS)
    assert "it is not known whether they gave it back as it was" in found.text
    assert "mixes" not in found.headline and "float16 and" not in found.text


MIXED = (
    "with saved_tensors_hooks(lambda t: t, lambda t: t):\n"
    "    loss = nn.functional.huber_loss(net(x), torch.zeros(5, 3, dtype=torch.float64))\nloss.backward()"
)


def test_types_that_an_operation_was_given_are_told_where_hooks_give_back_what_was_saved() -> None:
    (found,) = with_unpacked(HOOKS, MIXED)
    assert found.headline.endswith("mixes float64 and float32.")
    (unmeasured,) = findings_of(HOOKS, MIXED)
    assert "not known" in unmeasured.text


def test_hooks_that_convert_back_are_told_of_nothing() -> None:
    right = "def pack(t):\n    return t.dtype, t.half()\ndef unpack(kept):\n    return kept[1].to(kept[0])"
    assert not with_unpacked(HOOKS, right, PASS)
    assert not findings_of(HOOKS, right, PASS)
