"""Lines that only torch's anomaly mode has stored: of graphs that were made where nothing was recorded."""

from pathlib import Path
from typing import Any

import pytest
import torch
from told import findings_of

from graphwidget.capture.lines.anomaly import place_in
from graphwidget.capture.lines.book import Book


@pytest.fixture
def anomaly_mode():
    with torch.autograd.set_detect_anomaly(True):
        yield


def made_elsewhere(source: str, filename: str, **names: Any) -> dict[str, Any]:
    space: dict[str, Any] = {"torch": torch, **names}
    exec(compile(source, filename, "exec"), space)
    return space


@pytest.fixture
def net(tmp_path: Path, anomaly_mode: None) -> torch.Tensor:
    file = tmp_path / "net.py"
    file.write_text("def forward(w):\n    return w.exp()\n\nhidden = forward(torch.ones(3, requires_grad=True))\n")
    return made_elsewhere(file.read_text(), str(file))["hidden"]


@pytest.mark.filterwarnings("ignore:Error detected")
def test_a_graph_from_before_tracking_has_the_line_that_anomaly_mode_stored(net: torch.Tensor) -> None:
    (found,) = findings_of("h.sum().backward()\nh.sum().backward()", h=net)
    place = found.made_at
    assert found.kind == "second_backward" and place is not None and place.anomaly
    assert place.file is not None and place.file.endswith("net.py")
    assert (place.cell, place.line, place.function, place.source) == (None, 2, "forward", "return w.exp()")
    assert (
        f"By anomaly mode's record, ExpBackward0 was made in {place.file}:2 in forward: `return w.exp()`." in found.text
    )


@pytest.mark.filterwarnings("ignore:Error detected")
def test_without_anomaly_mode_such_a_line_is_unknown() -> None:
    h = torch.ones(3, requires_grad=True).exp()
    (found,) = findings_of("h.sum().backward()\nh.sum().backward()", h=h)
    assert found.made_at is None and "nomaly" not in found.text


@pytest.mark.filterwarnings("ignore:Error detected")
def test_a_line_that_was_recorded_is_told_as_ever() -> None:
    cell = "with torch.autograd.set_detect_anomaly(True):\n    h = torch.ones(3, requires_grad=True).exp()"
    (found,) = findings_of(cell, "h.sum().backward()\nh.sum().backward()")
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (1, 2)
    assert not found.made_at.anomaly and "nomaly" not in found.text


@pytest.mark.filterwarnings("ignore:Error detected")
def test_an_error_that_is_not_explained_has_the_line_too(anomaly_mode: None) -> None:
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            raise KeyError("odd")

    made = made_elsewhere("y = Odd.apply(torch.ones(3, requires_grad=True))", "<elsewhere>", Odd=Odd)
    (found,) = findings_of("y.exp().sum().backward()", y=made["y"])
    assert found.made_at is not None and found.made_at.spot == "<elsewhere>:1" and found.made_at.anomaly


@pytest.mark.filterwarnings("ignore:Error detected")
def test_nothing_of_the_users_runs_and_nothing_changes(net: torch.Tensor) -> None:
    node = net.grad_fn
    before = dict(node.metadata)
    findings_of("h.sum().backward()\nh.sum().backward()", h=net)
    assert {key: value for key, value in node.metadata.items() if key != "graphwidget"} == before


def test_the_innermost_line_of_the_users_own_counts_else_the_innermost_outside_of_torch() -> None:
    def entry(name: str, line: int, source: str = "x = f(y)") -> str:
        return f'  File "{name}", line {line}, in <module>\n    {source}\n    ~^~~\n'

    book = Book(is_own=lambda name: name.startswith("own"))
    book.open("<cell>", 3, "c", "a = 1\nx = f(y)", 0)

    def spot(*stack: str) -> tuple[Any, ...]:
        place = place_in(stack, book)
        assert place is not None and place.anomaly
        return place.cell, place.file, place.line

    other = entry("site-packages/lib.py", 7)
    assert spot(entry("own/a.py", 1), entry("own/b.py", 2), other) == (None, "own/b.py", 2)
    assert spot(entry("own/a.py", 1), entry("<cell>", 2), other) == (3, None, 2)
    assert spot(entry("<cell>", 2, "z = 2")) == (None, "<cell>", 2)  # another text: another version of it ran
    assert spot(entry("<cell>", 999, "")) == (None, "<cell>", 999)
    assert spot(other, entry(torch.__file__, 9)) == (None, "site-packages/lib.py", 7)
    assert spot(entry(torch.__file__, 9))[2] == 9
    assert place_in(["no entry", ""], book) is None and place_in((), book) is None


CARRIED = """import torch

class Net:
    def __init__(self):
        self.h = torch.zeros(3)

    def forward(self, w):
        self.h = torch.tanh(w * 2 + self.h)
        return self.h
"""


@pytest.mark.filterwarnings("ignore:Error detected")
def test_a_carrier_from_before_tracking_has_its_line_and_function_too(tmp_path: Path, anomaly_mode: None) -> None:
    file = tmp_path / "carried.py"
    file.write_text(CARRIED)
    net = made_elsewhere(CARRIED, str(file))["Net"]()
    w = torch.ones(3, requires_grad=True)
    net.forward(w)  # before tracking
    first, second = "net.h.sum().backward()", "loss = net.forward(w).sum()\nloss.backward()"
    found = findings_of(first, second, net=net, w=w)[0]
    assert found.kind == "second_backward" and found.made_at is not None
    assert (found.made_at.line, found.made_at.function) == (8, "Net.forward")
    assert "carried.py:8 in Net.forward" in found.text
