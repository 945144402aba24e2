"""What line tracing leaves out, and what it follows: the same with `sys.settrace` and with `sys.monitoring`."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from cells import Notebook

MINE = "def double(t):\n    return t * 2\n\n\ndef call(function, *args):\n    return function(*args)\n"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module of the user's own, imported before anything is tracked."""
    (tmp_path / "mine_before.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield importlib.import_module("mine_before")
    sys.modules.pop("mine_before", None)


@pytest.fixture
def cells() -> Iterator[Notebook]:
    notebook = Notebook()
    notebook.namespace["x"] = torch.ones(3, requires_grad=True)
    yield notebook
    notebook.close()


def stack(cells: Notebook, tensor: Any) -> list[tuple[str | int | None, int | None]]:
    """Cell or file, and line, of where a tensor was made and of what called that, the outermost first."""
    place = cells.tracker.provenance.place_of(tensor.grad_fn._sequence_nr())
    return [] if place is None else [(one.file or one.cell, one.line) for one in (*place.stack, place)]


def test_what_is_run_between_two_cells_has_no_place(cells: Notebook, mine: ModuleType) -> None:
    cells.run("y = x * 2")
    between = mine.double(cells.namespace["x"])
    cells.namespace["mine"] = mine
    cells.run("z = mine.double(x)")
    assert stack(cells, between) == []
    assert stack(cells, cells.namespace["z"]) == [(2, 1), ("mine_before.py", 2)]


def test_what_runs_a_cell_is_no_caller_of_it(cells: Notebook, mine: ModuleType) -> None:
    for _ in range(2):
        mine.call(cells.run, "y = x * 2")
    assert stack(cells, cells.namespace["y"]) == [(2, 1)]


def test_a_function_that_an_error_has_left_calls_nothing_any_more(cells: Notebook) -> None:
    # The library that catches the error has no lines: between the two functions no line of the cell begins.
    library: dict[str, Any] = {}
    exec(
        "def first_or(f, g, x):\n    try:\n        return f(x)\n    except ValueError:\n        return g(x)\n", library
    )
    cells.namespace.update(library)
    cells.run(
        "def bad(x):\n    raise ValueError\ndef good(x):\n    return x * 2\ny = first_or(bad, good, x)\nz = y * 2"
    )
    assert stack(cells, cells.namespace["y"]) == [(1, 5), (1, 4)]
    assert stack(cells, cells.namespace["z"]) == [(1, 6)]


def test_code_that_has_run_is_recorded_once_it_is_added(cells: Notebook, mine: ModuleType) -> None:
    cells.namespace["mine"] = mine
    cells.tracker.code(left_out=["mine_before"])
    cells.run("y = mine.double(x)")
    cells.tracker.code(added=["mine_before"])
    cells.run("z = mine.double(x)")
    cells.tracker.code(left_out=["mine_before"])
    cells.run("w = mine.double(x)")
    found = [stack(cells, cells.namespace[name]) for name in "yzw"]
    assert found == [[(1, 1)], [(2, 1), ("mine_before.py", 2)], [(3, 1)]]


def test_a_generator_goes_on_in_a_later_cell_and_after_an_error_was_thrown_into_it(cells: Notebook) -> None:
    cells.run(
        "def rows(x):\n    while True:\n        try:\n            yield x * 2\n"
        "        except ValueError:\n            yield x * 3\n"
        "steps = rows(x)\na = next(steps)"
    )
    cells.run("b = next(steps)\nc = steps.throw(ValueError)\nd = x * 4")
    found = {name: stack(cells, cells.namespace[name]) for name in "abcd"}
    assert found == {"a": [(1, 8), (1, 4)], "b": [(2, 1), (1, 4)], "c": [(2, 2), (1, 6)], "d": [(2, 3)]}


def test_a_thread_that_a_cell_began_is_recorded_when_the_cell_has_ended(cells: Notebook) -> None:
    go, done = threading.Event(), threading.Event()
    cells.namespace.update(go=go, done=done, threading=threading)
    cells.run(
        "def work():\n    go.wait()\n    for _ in range(3000):\n        out = x * 2\n    kept.append(out)\n    done.set()\n"
        "kept = []\nthreading.Thread(target=work).start()"
    )
    go.set()
    assert done.wait(10)
    assert stack(cells, cells.namespace["kept"][0]) == [(1, 4)]


def test_the_module_of_code_that_runs_is_known_so_that_its_variables_are_names(
    cells: Notebook, mine: ModuleType
) -> None:
    cells.namespace["double"] = mine.double
    cells.run("y = double(x)")
    assert "mine_before" in cells.tracker.provenance.book.modules
