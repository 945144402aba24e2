"""Grad mode that a statement switches off for good: the edit does what the text says."""

from collections.abc import Iterator

import pytest
import torch
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply, apply_to

NET = "net, x = nn.Linear(3, 1), torch.ones(2, 3)"
LOSS = "loss = net(x).sum()\nloss.backward()"


@pytest.fixture(autouse=True)
def _switched_on_again() -> Iterator[None]:
    yield
    torch.set_grad_enabled(True)


def test_a_function_that_only_evaluates_gets_a_decorator() -> None:
    score = 'def score(x):\n    """Say how good it is."""\n    torch.set_grad_enabled(False)\n    return float(net(x).sum())'
    (found,) = findings_of(NET, score, "score(x)", LOSS)
    torch_on = found.fixes[0]
    assert torch_on.edit == ("+ @torch.no_grad()", "  def score(x):", "-     torch.set_grad_enabled(False)")
    assert "put `@torch.no_grad()` on `score`" in torch_on.text


def test_a_line_of_a_cell_is_removed() -> None:
    (found,) = findings_of(NET, "torch.set_grad_enabled(False)\nprint(net(x))", LOSS)
    assert found.fixes[0].edit == ("- torch.set_grad_enabled(False)",)
    assert found.fixes[0].text.startswith("Remove `torch.set_grad_enabled(False)`")


def test_under_an_if_it_is_removed_from_the_function_that_trains_as_well() -> None:
    run = (
        "def run(train):\n    if not train:\n        torch.set_grad_enabled(False)\n    loss = net(x).sum()\n"
        "    if train:\n        loss.backward()"
    )
    (found,) = findings_of(NET, run, "for _ in range(2):\n    run(True)\n    run(False)")
    assert found.fixes[0].edit == ("- torch.set_grad_enabled(False)", "+ pass")


STREAM = (
    "def stream(n):\n    with torch.no_grad():\n        for _ in range(n):\n            y = net(x)\n            yield y"
)
USED = "for y in stream(2):\n    loss = (net(x) - y).pow(2).sum()\n    loss.backward()"


def test_the_with_of_a_generator_that_waits_is_open_for_the_code_that_uses_it() -> None:
    (found,) = findings_of(NET, STREAM, USED)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 2)
    assert "`stream` is a generator that yields inside `with torch.no_grad():`" in found.text
    assert found.fixes[0].edit[:2] == ("+ @torch.no_grad()", "  def stream(n):")
    assert "-     with torch.no_grad():" in found.fixes[0].edit and "+     for _ in range(n):" in found.fixes[0].edit
    assert not findings_of(NET, f"@torch.no_grad()\n{STREAM.replace('with torch.no_grad()', 'if True')}", USED)


def test_a_loop_calls_the_iterator_of_an_object() -> None:
    stream = (
        "class Stream:\n    def __iter__(self):\n        waiting, n = [], iter(range(3))\n        with torch.no_grad():\n"
        "            waiting.append(net(x))\n            while waiting:\n                yield waiting.pop()\n"
        "                if next(n, None) is not None:\n                    waiting.append(net(x))"
    )
    (found,) = findings_of(NET, stream, USED.replace("stream(2)", "Stream()"))
    assert "`Stream.__iter__` is a generator that yields inside `with torch.no_grad():`" in found.text
    assert found.fixes[0].edit[:2] == ("+ @torch.no_grad()", "  def __iter__(self):")


def test_of_two_generators_none_is_named_nor_one_that_nothing_calls() -> None:
    (found,) = findings_of(NET, STREAM, STREAM.replace("stream", "other"), f"held = other(2)\n{USED}")
    assert "generator" not in found.text
    unused = f"{STREAM}\n{LOSS.splitlines()[0]}"
    (found,) = findings_of(NET, unused, "with torch.no_grad():\n    loss = net(x).sum()\nloss.backward()")
    assert "generator" not in found.text


def test_a_yield_at_the_end_of_the_block_is_put_behind_it() -> None:
    stream = "def stream(n):\n    for _ in range(n):\n        with torch.no_grad():\n            y = net(x)\n            yield y"
    (found,) = findings_of(NET, stream, USED)
    assert found.fixes[0].edit[-2:] == ("-     yield y", "+ yield y")


def test_in_place_of_inference_mode_a_generator_gets_a_mode_whose_values_a_backward_can_use() -> None:
    (found,) = findings_of(NET, STREAM.replace("no_grad", "inference_mode"), USED)
    assert "yields inside `with torch.inference_mode():`" in found.text
    assert found.fixes[0].edit[0] == "+ @torch.no_grad()"


EARLY = """best = [9.0]
def check(x):
    torch.set_grad_enabled(False)
    # how good it is
    score = float(net(x).sum())
    {leave}
    torch.set_grad_enabled(True)
    return score
"""
EPOCHS = "for epoch in range(3):\n    loss = net(x).sum()\n    loss.backward()\n    {call}"


@pytest.mark.parametrize(
    ("leave", "said", "call"),
    [
        ("if score < best[0]:\n        return None", "`return None` (In[2], line 7) leaves before", "check(x)"),
        (
            "if score < best[0]:\n        raise ValueError('worse')",
            "`raise ValueError('worse')` (In[2], line 7) leaves before",
            "try:\n        check(x)\n    except ValueError:\n        pass",
        ),
    ],
    ids=["a return", "an error"],
)
def test_an_early_way_out_leaves_it_off(leave: str, said: str, call: str) -> None:
    cell = EARLY.format(leave=leave)
    (found,) = findings_of(NET, cell, EPOCHS.format(call=call))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 3)
    assert said in found.text and "`torch.set_grad_enabled(True)` (In[2], line 8) switches it on again" in found.text
    fix = found.fixes[0]
    text = apply(cell, fix.edits)
    assert "with torch.no_grad():\n        # how good it is\n" in text and "set_grad_enabled" not in text
    torch.set_grad_enabled(True)
    assert findings_of(NET, text, EPOCHS.format(call=call)) == ()


def test_in_a_loop_it_stays_off_for_the_next_pass() -> None:
    loop = (
        "def run(n):\n    for i in range(n):\n        loss = net(x).sum()\n        loss.backward()\n"
        "        torch.set_grad_enabled(False)\n        if i < 2:\n            continue\n"
        "        torch.set_grad_enabled(True)"
    )
    (found,) = findings_of(NET, loop, "run(3)")
    assert "`continue` (In[2], line 7) leaves before" in found.text
    assert "+ with torch.no_grad():" in found.fixes[0].edit and "+         continue" in found.fixes[0].edit


@pytest.mark.parametrize("inner", ["for _ in range(2):\n        continue", "print(score)"])
def test_what_does_not_leave_the_function_is_not_blamed(inner: str) -> None:
    assert findings_of(NET, EARLY.format(leave=inner), EPOCHS.format(call="check(x)")) == ()


MODES = """class inference:
    def __init__(self, net):
        self.net = net
    def __enter__(self):
        self.net.eval()
        torch.set_grad_enabled(False)
        return self.net
    def __exit__(self, *error):
        self.net.train()"""
MANAGED = """from contextlib import contextmanager
@contextmanager
def inference(net):
    torch.set_grad_enabled(False)
    yield net"""
SCORE = "def score(x):\n    with inference(net) as quiet:\n        return float(quiet(x).sum())"
PUT_BACK = (
    "+ self.grad_was_enabled = torch.is_grad_enabled()",
    "  torch.set_grad_enabled(False)",
    "+ torch.set_grad_enabled(self.grad_was_enabled)",
    "  self.net.train()",
)


@pytest.mark.parametrize(
    ("modes", "line", "edit"),
    [
        (MODES, 6, PUT_BACK),
        (MANAGED, 4, ("- torch.set_grad_enabled(False)", "- yield net", "+ with torch.no_grad():", "+     yield net")),
    ],
)
def test_a_context_manager_puts_grad_mode_back(modes, line, edit) -> None:
    cells = (NET, modes, SCORE, "print(score(x))", LOSS)
    (found,) = findings_of(*cells)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, line)
    assert "when `with inference(...)` began" in found.text
    assert tuple(one.strip() if one[0] == "-" else one for one in found.fixes[0].edit) == edit
    torch.set_grad_enabled(True)
    mended = apply_to(dict(enumerate(cells, 1)), found.fixes[0].edits)
    assert not findings_of(*mended.values())


def test_a_context_manager_that_puts_it_back_is_not_blamed() -> None:
    mended = MODES.replace("        self.net.train()", "        self.net.train()\n        torch.set_grad_enabled(True)")
    (found,) = findings_of(NET, mended, SCORE, "print(score(x))\ntorch.set_grad_enabled(False)", LOSS)
    assert "inference" not in found.text and found.fixes[0].edit == ("- torch.set_grad_enabled(False)",)
