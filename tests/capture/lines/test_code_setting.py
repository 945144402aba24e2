"""What is the user's own code by the settings of a project, of the environment, and by what a program asks for."""

import os
import sys
from pathlib import Path

import pytest

import graphwidget as gw
from graphwidget.capture.lines.code_setting import VARIABLE, from_settings


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a package; a function that writes its setting."""
    (tmp_path / "helpers_alone").mkdir()
    (tmp_path / "helpers_alone" / "__init__.py").write_text("def double(x):\n    return x * 2\n")
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    yield lambda text: (tmp_path / "pyproject.toml").write_text(text)
    sys.modules.pop("helpers_alone", None)


def setting(value):
    return f"[tool.graphwidget]\ncode = {value}\n"


def test_the_nearest_pyproject_adds_and_leaves_out(project, tmp_path):
    project(setting('["pytest", "-helpers_alone"]'))
    own = from_settings()
    assert own(pytest.__file__) and not own(str(tmp_path / "helpers_alone" / "__init__.py"))
    assert own.notes() == ("Left out, so that its lines are unknown: helpers_alone.",)


def test_the_environment_counts_more_and_what_is_asked_for_most(project, tmp_path):
    project(setting('["pytest", "-helpers_alone"]'))
    helpers = str(tmp_path / "helpers_alone" / "__init__.py")
    environ = {VARIABLE: "helpers_alone, -pytest"}
    own = from_settings(environ=environ)
    assert own(helpers) and not own(pytest.__file__)
    own = from_settings(["pytest"], environ=environ)
    assert own(helpers) and own(pytest.__file__)


def test_a_module_of_a_setting_may_be_imported_later(project, tmp_path, monkeypatch):
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "later_alone.py").write_text("")
    own = from_settings(environ={VARIABLE: "-later_alone"})
    path = str(tmp_path / "later" / "later_alone.py")
    assert own.notes() == (f"{VARIABLE}: no module later_alone was imported.",)
    monkeypatch.syspath_prepend(str(tmp_path / "later"))
    import later_alone  # noqa: F401

    assert not own(path)
    assert own.notes() == ("Left out, so that its lines are unknown: later_alone.",)
    del sys.modules["later_alone"]


@pytest.mark.parametrize(
    "text", [setting('"mylib"'), setting("[1]"), "[tool.graphwidget\n", "[tool]\ngraphwidget = 1\n"]
)
def test_a_setting_that_is_none_is_said_and_raises_nothing(project, text):
    project(text)
    (said,) = from_settings().notes()
    assert "pyproject.toml" in said


def test_a_project_without_the_setting_changes_nothing(project):
    project("[project]\nname = 'x'\n")
    own = from_settings()
    assert own.notes() == () and own(__file__)


def test_a_tracker_goes_by_the_settings_and_the_magic_says_them(project, monkeypatch):
    import torch

    monkeypatch.setenv(VARIABLE, "-helpers_alone")
    with gw.track() as tracker:
        from helpers_alone import double

        root = double(torch.ones(2, requires_grad=True))
        places = gw.snapshot(root).places
    assert {Path(place.file or "").name for place in places} == {os.path.basename(__file__)}
    assert "left out: helpers_alone" in str(tracker.own_code)
