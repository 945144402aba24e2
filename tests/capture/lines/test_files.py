"""Files of the user's own are sources as cells are: which they are, and when their text is that of what ran."""

from __future__ import annotations

import importlib
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch

import graphwidget as gw
from graphwidget.capture.lines.own_code import OwnCode, in_and_out

MODULE = "import torch\n\n\ndef loss(w):\n    y = w.exp()\n    return y.sum()\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module in a folder of its own, not imported yet: a function that imports it and gives its path."""
    (tmp_path / "mine_alone.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield lambda: importlib.import_module("mine_alone")
    sys.modules.pop("mine_alone", None)


def places(tracker: Any, root: torch.Tensor) -> list[tuple[str | None, int | None, str, str | None]]:
    graph = gw.snapshot(root)
    found = [graph.place_of(i) for i in range(len(graph))]
    return [(p.file, p.line, p.source, p.function) for p in found if p is not None]


def test_a_node_of_a_module_has_its_file_line_and_function_and_the_stack_of_calls(module: Any) -> None:
    with gw.track() as tracker:
        w = torch.ones(2, requires_grad=True)
        root = module().loss(w)
        assert ("mine_alone.py", 6, "return y.sum()", "loss") in places(tracker, root)
        assert ("mine_alone.py", 5, "y = w.exp()", "loss") in places(tracker, root)
        (place,) = {p for p in gw.snapshot(root).places if p.line == 5}
        assert [one.file for one in place.stack][-1].endswith("test_files.py") and place.cell is None


def test_a_file_edited_before_its_line_was_needed_has_no_text(module: Any, tmp_path: Path) -> None:
    mine = module()
    (tmp_path / "mine_alone.py").write_text(MODULE.replace("exp", "sin"))
    with gw.track() as tracker:
        root = mine.loss(torch.ones(2, requires_grad=True))
        assert ("mine_alone.py", 5, "", None) in places(tracker, root)
        assert [run.edited for run in tracker.record().runs.values() if run.file == "mine_alone.py"] == [True]


def test_a_module_that_was_edited_and_reloaded_has_its_new_text(module: Any, tmp_path: Path) -> None:
    with gw.track() as tracker:
        mine = module()
        first = mine.loss(torch.ones(2, requires_grad=True))
        assert ("mine_alone.py", 5, "y = w.exp()", "loss") in places(tracker, first)
        (tmp_path / "mine_alone.py").write_text(MODULE.replace("w.exp()", "w.square()"))
        importlib.invalidate_caches()
        second = importlib.reload(mine).loss(torch.ones(2, requires_grad=True))
        assert ("mine_alone.py", 5, "y = w.square()", "loss") in places(tracker, second)
        assert ("mine_alone.py", 5, "y = w.exp()", "loss") in places(tracker, first)


def test_code_made_by_exec_under_the_name_of_a_file_gets_no_text_of_it(module: Any, tmp_path: Path) -> None:
    with gw.track() as tracker:
        names: dict[str, Any] = {}
        exec(compile(MODULE.replace("exp", "cos"), str(tmp_path / "mine_alone.py"), "exec"), names)
        root = names["loss"](torch.ones(2, requires_grad=True))
        assert {source for file, _, source, _ in places(tracker, root) if file == "mine_alone.py"} == {""}


def test_what_is_installed_is_not_the_user_s_own_unless_it_is_added(tmp_path: Path) -> None:
    own = OwnCode()
    assert own(__file__)
    assert not own(torch.__file__) and not own(pytest.__file__) and not own(gw.__file__)
    assert not own(f"{sysconfig.get_paths()['stdlib']}/json/__init__.py")
    assert not own("<string>") and not own("<frozen importlib._bootstrap>") and not own(str(tmp_path / "gone.py"))
    own.change(["pytest"], [str(Path(__file__).parent)])
    assert own(pytest.__file__) and not own(__file__)
    assert in_and_out(["a", "+b", "-c"]) == (["a", "b"], ["c"])
    with pytest.raises(ValueError, match="no_such_module"):
        own.change(["no_such_module"])
    assert own(pytest.__file__)


def test_code_that_is_added_is_recorded_and_code_that_is_left_out_is_not(module: Any) -> None:
    with gw.track(code=["-mine_alone"]) as tracker:
        root = module().loss(torch.ones(2, requires_grad=True))
        assert {Path(file or "").name for file, *_ in places(tracker, root)} == {"test_files.py"}
