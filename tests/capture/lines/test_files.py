"""Files of the user's own are sources as cells are: which they are, and when their text is that of what ran."""

from __future__ import annotations

import ast
import importlib
import os
import sys
import sysconfig
import textwrap
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
import torch

import graphwidget as gw
from graphwidget.capture.lines.files import SourceFile, block_of
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


def test_what_was_installed_into_a_folder_of_any_name_is_not_the_user_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "theirs/__init__.py": "",
        "single.py": "",
        "mine.py": "",
        "theirs-1.0.dist-info/RECORD": "theirs/__init__.py,sha256=x,0\nsingle.py,,\n../../bin/theirs,,\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    own = OwnCode()
    monkeypatch.syspath_prepend(tmp_path)
    assert own(str(tmp_path / "mine.py"))
    assert not own(str(tmp_path / "theirs" / "__init__.py")) and not own(str(tmp_path / "single.py"))
    own.change(["theirs"])
    assert own(str(tmp_path / "theirs" / "__init__.py"))


def test_code_that_is_added_is_recorded_and_code_that_is_left_out_is_not(module: Any) -> None:
    with gw.track(code=["-mine_alone"]) as tracker:
        root = module().loss(torch.ones(2, requires_grad=True))
        assert {Path(file or "").name for file, *_ in places(tracker, root)} == {"test_files.py"}


KEPT = MODULE + "\n\ndef fit(w):\n    kept = loss(w)\n    kept.backward()\n    kept.backward()\n"


@pytest.fixture
def edited(module: Any, tmp_path: Path) -> Any:
    """A program that raises in a module which is edited while it runs: its tracker, after the error."""
    (tmp_path / "mine_alone.py").write_text(KEPT)
    with gw.track() as tracker:
        fit = module().fit
        (tmp_path / "mine_alone.py").write_text("# a line more\n" + KEPT)
        with pytest.raises(RuntimeError, match="second time"):
            fit(torch.ones(2, requires_grad=True))
        yield tracker


def test_a_file_that_was_edited_keeps_the_lines_and_the_text_that_ran(edited: Any) -> None:
    (found,) = edited.findings()
    assert found.failed_at is None and (found.made_at.file, found.made_at.line) == ("mine_alone.py", 5)
    assert found.made_at.source == "y = w.exp()"


def test_a_finding_says_that_its_file_was_edited_and_has_no_edits_of_a_text_that_is_gone(edited: Any) -> None:
    (found,) = edited.findings()
    assert "mine_alone.py has been edited since it was imported: lines and text are those of what ran." in found.text
    assert found.fixes and all(not fix.edits for fix in found.fixes)


def test_a_view_says_so_too(edited: Any) -> None:
    shown = gw.view(edited)
    try:
        assert "mine_alone.py has been edited since it was imported" in shown.as_text()
    finally:
        shown.close()


def test_a_finding_in_a_file_that_was_not_edited_says_nothing_of_that(module: Any, tmp_path: Path) -> None:
    (tmp_path / "mine_alone.py").write_text(KEPT)
    with gw.track() as tracker:
        with pytest.raises(RuntimeError, match="second time"):
            module().fit(torch.ones(2, requires_grad=True))
        (found,) = tracker.findings()
    assert "edited" not in found.text and any(fix.edits for fix in found.fixes)


def test_code_whose_text_is_unknown_is_said_to_be_so(module: Any, tmp_path: Path) -> None:
    with gw.track() as tracker:
        names: dict[str, Any] = {}
        exec(compile(KEPT.replace("exp", "cosh"), str(tmp_path / "mine_alone.py"), "exec"), names)
        with pytest.raises(RuntimeError, match="second time"):
            names["fit"](torch.ones(2, requires_grad=True))
        (found,) = tracker.findings()
    assert "The text of mine_alone.py is not that of the code that ran" in found.text
    assert all(not fix.edits for fix in found.fixes)


def test_a_module_that_autoreload_has_loaded_again_has_its_new_text(module: Any, tmp_path: Path) -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.extensions.autoreload import ModuleReloader

    with gw.track() as tracker:
        mine = module()
        kept, path = mine.loss, tmp_path / "mine_alone.py"
        try:
            reloader = ModuleReloader(InteractiveShell.instance())
            reloader.check(check_all=True)
            path.write_text("# a line more\n" + MODULE.replace("w.exp()", "w.square()"))
            os.utime(path, (path.stat().st_mtime + 10,) * 2)  # its clock counts seconds
            reloader.check(check_all=True)
        finally:
            InteractiveShell.clear_instance()
        root = kept(torch.ones(2, requires_grad=True))  # autoreload puts the new code into the old function
        assert ("mine_alone.py", 6, "y = w.square()", "loss") in places(tracker, root)


METHOD = """import math

class Net:
    # what autoreload compiles has no comments
    def forward(self, x):
        return math.sqrt(x){}
"""


@pytest.mark.parametrize("behind, known", [("", True), ("  # the same lines", True), (" + (\n            1)", False)])
def test_a_method_that_autoreload_has_compiled_alone_has_its_lines_or_none(
    tmp_path: Path, behind: str, known: bool
) -> None:
    path = tmp_path / "net_alone.py"
    path.write_text(METHOD.format(behind))
    method = ast.unparse(ast.parse(path.read_text()).body[1].body[0])  # type: ignore[attr-defined]
    alone = compile("class _:\n" + textwrap.indent(method, "    "), str(path), "exec")
    (code,) = [
        one for c in alone.co_consts if isinstance(c, CodeType) for one in c.co_consts if hasattr(one, "co_code")
    ]
    file = SourceFile(str(path), code)
    assert bool(file.lines) == known
    if known:
        assert "math.sqrt" in file.lines[code.co_firstlineno + file.shift]  # the line behind `def`


def test_a_package_in_an_archive_and_byte_compiled_code_have_no_lines(tmp_path: Path, monkeypatch: Any) -> None:
    import py_compile
    import zipfile

    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed_alone.py", MODULE)
    (tmp_path / "source.py").write_text(MODULE)
    py_compile.compile(str(tmp_path / "source.py"), str(tmp_path / "compiled_alone.pyc"))
    (tmp_path / "source.py").unlink()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    with gw.track() as tracker:
        for name in ("packed_alone", "compiled_alone"):
            root = importlib.import_module(name).loss(torch.ones(2, requires_grad=True))
            assert {Path(file or "").name for file, *_ in places(tracker, root)} == {"test_files.py"}
            del sys.modules[name]


@pytest.mark.parametrize("length", [3, 500])
@pytest.mark.parametrize("end", ["", "\n\ndef after():\n    return 0\n"])
def test_the_text_of_a_function_ends_with_it_however_long_it_is(length: int, end: str) -> None:
    body = "".join(f"    x = x + (\n        {n}\n    )\n" for n in range(length))
    text = "import os\n\n\ndef long(x):\n" + body + "    # the end\n" + end
    code = next(one for one in compile(text, "long.py", "exec").co_consts if getattr(one, "co_name", "") == "long")
    found, before = block_of(code, text.splitlines())
    assert before == 3
    assert found.splitlines()[: 3 * length + 1] == text.splitlines()[3 : 3 * length + 4]
    assert "after" not in found


def test_code_that_torch_compile_put_in_place_of_a_function_has_the_text_of_its_file(module: Any) -> None:
    with gw.track() as tracker:
        loss = module().loss
        loss(torch.ones(2))
        made = loss.__code__.replace(co_names=(*loss.__code__.co_names, "__compiled_fn_1"))
        root = FunctionType(made, loss.__globals__)(torch.ones(2, requires_grad=True))
        assert places(tracker, root)[0][2:] == ("return y.sum()", "loss")
        assert not tracker.provenance.book.edited_files()


class _OfAnInstance:
    """As torch.jit has it: a `forward` for which the class itself cannot be asked."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            raise AttributeError("forward")
        return torch.exp


def test_lines_behind_a_module_without_a_forward_of_its_class_are_known() -> None:
    odd = type("Odd", (torch.nn.Module,), {"forward": _OfAnInstance()})()
    with gw.track() as tracker:
        x = odd(torch.ones(2, requires_grad=True))
        root = x.sum()
        assert [source for *_, source, _ in places(tracker, root)] == [
            "root = x.sum()",
            "x = odd(torch.ones(2, requires_grad=True))",
        ]
        assert not tracker.problems
