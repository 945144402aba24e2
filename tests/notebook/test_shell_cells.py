"""Kinds of cells, in a real IPython shell: whatever way a cell runs and ends, the next one is tracked as if alone."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from graphwidget.notebook import session

START = "%load_ext graphwidget\nimport torch\nx = torch.ones(3, requires_grad=True)"
STEP = "loss = (x * 2).exp().sum()\nloss.backward()"


def run(shell: Any, *cells: str) -> Any:
    result = None
    for cell in cells:
        result = shell.run_cell(cell, store_history=True)
    return result


def last_call(shell: Any) -> tuple[int | None, int | None, str]:
    call = session.tracker_of(shell).calls[-1]
    return call.place.cell, call.place.line, call.result


def assert_the_next_cell_is_tracked(shell: Any, number: int) -> None:
    run(shell, STEP)
    tracker = session.tracker_of(shell)
    assert last_call(shell) == (number, 2, "ok")
    assert {n.place.line for n in tracker.snapshot().nodes if n.place and n.name == "ExpBackward0"} == {1}
    assert tracker.busy is None and list(tracker.problems) == []
    assert sys.gettrace() is None


@pytest.mark.parametrize("magic", ["%%time", "%%capture"])
def test_a_call_under_a_cell_magic_has_its_line_in_the_cell(shell: Any, magic: str) -> None:
    run(shell, START, f"{magic}\n{STEP}")
    assert last_call(shell) == (2, 3, "ok")
    assert_the_next_cell_is_tracked(shell, 3)


def test_an_async_cell_that_awaits_keeps_its_lines(shell: Any) -> None:
    run(shell, START, f"import asyncio\nawait asyncio.sleep(0)\n{STEP}\nawait asyncio.sleep(0)\ny = x * 5")
    assert last_call(shell) == (2, 4, "ok")
    assert_the_next_cell_is_tracked(shell, 3)


def test_a_cell_that_runs_another_goes_on_afterwards(shell: Any) -> None:
    run(shell, START, f"get_ipython().run_cell('a = 1')\n{STEP}")
    assert last_call(shell) == (2, 3, "ok")
    assert_the_next_cell_is_tracked(shell, 3)


@pytest.mark.parametrize(
    "source",
    [
        "raise KeyboardInterrupt",
        "raise SystemExit(1)",
        "this is no Python",
        "x.no_such_attribute",
        "for i in range(3):\n    (x * 2).sum().backward()\n    raise KeyboardInterrupt",
    ],
    ids=["interrupt", "exit", "syntax", "error", "interrupt in a loop"],
)
@pytest.mark.filterwarnings("ignore:To exit")
def test_a_cell_that_ends_badly_leaves_nothing_behind(shell: Any, source: str) -> None:
    run(shell, START, source)
    assert_the_next_cell_is_tracked(shell, 3)


def test_a_tracer_that_is_there_sees_what_it_would_have_seen_and_stays(shell: Any) -> None:
    seen: list[tuple[str, int]] = []

    def theirs(frame: Any, event: str, arg: object) -> Any:
        if frame.f_code.co_name == "work":
            seen.append((event, frame.f_lineno))
        return theirs

    run(shell, START, "def work():\n    a = x * 2\n    return a.exp().sum()")
    shell.user_ns["theirs"] = theirs
    before = sys.gettrace()
    sys.settrace(theirs)
    try:
        run(shell, "loss = work()\nloss.backward()")
        assert sys.gettrace() is theirs
    finally:
        sys.settrace(before)
    assert [event for event, _ in seen] == ["call", "line", "line", "return"]
    assert last_call(shell) == (3, 2, "ok")
    tracker = session.tracker_of(shell)
    assert {(n.place.cell, n.place.line) for n in tracker.snapshot().nodes if n.place and n.name == "ExpBackward0"} == {
        (2, 3)
    }
