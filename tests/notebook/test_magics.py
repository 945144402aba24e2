from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.error import UsageError

import graphwidget as gw
from graphwidget.notebook import session
from graphwidget.notebook.magics import VERBS

FORWARD = "import torch; w = torch.ones(3, requires_grad=True); d = {'a b': w.exp()}\nloss = d['a b'].sum()"


@pytest.fixture
def loaded(shell: Any) -> Any:
    shell.run_cell("%load_ext graphwidget", store_history=True)
    shell.run_cell(FORWARD, store_history=True)
    return shell


def magic(shell: Any, line: str) -> None:
    shell.run_line_magic("graphwidget", line)


def refusal(shell: Any, line: str) -> str:
    with pytest.raises(UsageError) as caught:
        magic(shell, line)
    return str(caught.value)


def completions(shell: Any, line: str) -> list[str]:
    return session.current().magics.complete(shell, SimpleNamespace(line=line, symbol=line.split(" ")[-1]))


def test_without_a_word_it_shows_the_view_with_text(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    magic(loaded, "")
    assert "ExpBackward0  d['a b']  In[2]:1" in capsys.readouterr().out
    view = session.current().view
    magic(loaded, "show")
    assert session.current().view is view, "many views, one widget"


def test_a_closed_view_is_made_anew(loaded: Any) -> None:
    magic(loaded, "")
    first = session.current().view
    first.close()
    magic(loaded, "")
    assert session.current().view is not first


def test_text_prints_the_picture(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    magic(loaded, "text")
    out = capsys.readouterr().out
    assert out.startswith("Autograd graph: 2 nodes, 1 leaf, 1 root") and "is running" not in out


def test_svg_shows_a_static_image(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    magic(loaded, "svg")
    assert shown[0].data.startswith("<svg") and "ExpBackward0" in shown[0].data


def test_explain_tells_what_went_wrong(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    magic(loaded, "explain")
    assert capsys.readouterr().out == "No finding. No backward call was recorded.\n"
    loaded.run_cell("loss.backward()", store_history=True)
    loaded.run_cell("loss.backward()", store_history=True)
    capsys.readouterr()
    magic(loaded, "explain loss")
    assert "✕ ② needs saved tensors that ① freed." in capsys.readouterr().out


def test_forecast_says_what_a_call_would_do(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    magic(loaded, "forecast loss")
    out = capsys.readouterr().out
    assert "loss.backward() would succeed: 3 nodes would run." in out and "frees 1 saved tensor, 12 B" in out
    assert "changes .grad of w" in out and loaded.user_ns["w"].grad is None
    magic(loaded, "forecast loss --retain-graph")
    assert (
        "loss.backward(retain_graph=True) would succeed" in (out := capsys.readouterr().out) and "frees nothing" in out
    )


def test_forecast_finds_paths_that_are_no_names(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    magic(loaded, "forecast d['a b']")
    assert "d['a b'].backward() would raise (not_scalar)" in capsys.readouterr().out


def test_an_unknown_word_names_the_nearest(loaded: Any) -> None:
    assert "Did you mean `%graphwidget explain`?" in refusal(loaded, "explian")
    assert "[show [--present | --no-present] | on | off" in refusal(loaded, "xyzzy")


def test_words_too_many_are_refused(loaded: Any) -> None:
    assert "takes nothing more" in refusal(loaded, "text loss")
    assert "There is no option `--retain`. Did you mean `--retain-graph`?" in refusal(loaded, "forecast loss --retain")
    assert "There is no option `-v`" in refusal(loaded, "explain -v")


def test_a_name_that_does_not_exist_names_those_that_do(loaded: Any) -> None:
    assert "There is no tensor `los`. There is: loss." in refusal(loaded, "forecast los")
    assert "Which tensor?" in refusal(loaded, "forecast")
    loaded.run_cell("del loss, d", store_history=True)
    assert "run the forward pass first" in refusal(loaded, "explain loss")


def test_what_is_no_tensor_or_has_no_grad_says_so(loaded: Any) -> None:
    loaded.user_ns["model"] = object()
    assert "`model` is of type object, not a tensor" in refusal(loaded, "forecast model")
    loaded.run_cell("plain = torch.ones(2); whole = torch.ones(2, dtype=torch.int64)")
    assert "does not require grad" in refusal(loaded, "forecast plain")
    assert "x.float()" in refusal(loaded, "forecast whole")


def test_nothing_is_evaluated(loaded: Any) -> None:
    loaded.user_ns["boom"] = lambda: 1 / 0
    assert "There is no tensor `boom()`" in refusal(loaded, "forecast boom()")


def test_off_on_and_reset_say_what_they_did(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    magic(loaded, "off")
    assert "on` goes on" in capsys.readouterr().out and not session.current().tracker.running
    magic(loaded, "on")
    magic(loaded, "reset")
    assert session.current().tracker.running and len(session.current().tracker.events) == 0


def test_the_tab_key_knows_words_and_names(loaded: Any) -> None:
    assert completions(loaded, "%graphwidget ") == list(VERBS)
    assert completions(loaded, "%graphwidget fo") == list(VERBS)
    assert "loss" in completions(loaded, "%graphwidget forecast ") and "loss" in completions(
        loaded, "%graphwidget explain l"
    )
    assert "--retain-graph" in completions(loaded, "%graphwidget forecast loss ")
    assert completions(loaded, "%graphwidget text ") == []


def test_the_magics_help_lists_every_word(loaded: Any) -> None:
    doc = loaded.magics_manager.magics["line"]["graphwidget"].__doc__
    assert all(verb in doc for verb in VERBS)
    assert doc.startswith("::\n\n  %graphwidget [--retain-graph] [--present] [--no-present] [WORDS ...]")


def test_options_may_stand_anywhere_and_comments_anything(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("forecast --retain-graph d['a b']", "forecast  d['a b'] --retain-graph  # is it kept?"):
        magic(loaded, line)
        assert "d['a b'].backward(retain_graph=True) would raise" in capsys.readouterr().out
    assert "takes nothing more, but got `--retain-graph`" in refusal(loaded, "text --retain-graph")
    assert "There is no option `--retain-graph`" in refusal(loaded, "explain loss --retain-graph")


def test_an_error_is_explained_under_its_traceback_unless_switched_off(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(error: BaseException) -> str:
        printed = capsys.readouterr().err
        # Python 3.10 has no notes on exceptions: there it is a message after the traceback.
        return "\n".join(error.__notes__) if hasattr(error, "__notes__") else printed

    shell.run_cell("%load_ext graphwidget")
    shell.run_cell("import torch\nc = torch.tensor(2.0, requires_grad=True) * 5\nc.backward()")
    error = shell.run_cell("c.backward()").error_in_exec
    note = said(error)
    assert "freed" in note and "retain_graph=True" in note
    assert len(note.splitlines()) <= 12
    shell.run_line_magic("graphwidget", "notes off")
    assert said(shell.run_cell("c.backward()").error_in_exec) == ""


def test_the_view_is_shown_to_an_audience_and_views_made_later_too(loaded: Any) -> None:
    def presenting() -> tuple[bool, bool]:
        other = gw.view(loaded.user_ns["loss"])
        found = gw.view().presenting, other.presenting
        other.close()
        return found

    assert presenting() == (False, False)
    loaded.run_line_magic("graphwidget", "--present")
    assert presenting() == (True, True)
    loaded.run_line_magic("graphwidget", "show")
    assert presenting() == (True, True), "it is remembered"
    loaded.run_line_magic("graphwidget", "show --no-present")
    assert presenting() == (False, False)
    for line, why in {
        "--present --no-present": "Either",
        "--presen": "Did you mean `--present`",
        "text --present": "takes nothing more",
    }.items():
        with pytest.raises(UsageError, match=why):
            loaded.run_line_magic("graphwidget", line)


def test_nan_names_the_first_value_that_is_not_finite(loaded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    magic(loaded, "nan loss")
    assert "are finite" in capsys.readouterr().out
    loaded.run_cell("x = torch.zeros(2, requires_grad=True)\nloss = x.sqrt().sum()", store_history=True)
    magic(loaded, "nan loss")
    told = capsys.readouterr().out
    assert "SqrtBackward0 (In[3]:2) is inf at [0], 2 of 2 elements" in told
    assert "Below which tensor?" in refusal(loaded, "nan")
    assert "loss" in completions(loaded, "%graphwidget nan ")
