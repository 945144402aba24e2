"""Trying a fix from a notebook: which cells run again, and what is said before and after."""

from __future__ import annotations

import time
from typing import Any

import pytest
from IPython.core.error import UsageError

from graphwidget.model import Fix, Trial
from graphwidget.notebook import session
from graphwidget.notebook.trying import CannotTry, Clicked, Trying
from graphwidget.trials.attempt import Attempt, Ran

FORWARD = "w = torch.ones(3, requires_grad=True)\ny = w.exp()"
TWICE = "y.sum().backward()\n(y * 2).sum().backward()"


@pytest.fixture
def reused(run: Any, shell: Any) -> Trying:
    run(FORWARD, TWICE)
    return session.current().trying


def plan(trying: Trying) -> Any:
    finding = trying.tracker().findings()[0]
    return trying.plan(finding, finding.fixes[0])


def test_the_cells_up_to_the_one_that_raised_run_again(reused: Trying, shell: Any) -> None:
    shell.run_cell("later = 1", store_history=True)
    planned = plan(reused)
    assert planned.ran.rerun.cells == ("import torch", FORWARD, TWICE)
    assert planned.lines[0].startswith("In[1], In[2] and In[3] run again in a fresh process, with the fix")
    assert [(error.step, error.type) for error in planned.ran.errors] == [(3, "RuntimeError")]


def test_cells_from_before_the_extension_come_from_the_history(shell: Any) -> None:
    shell.run_cell("import torch\n!true", store_history=True)
    shell.run_cell("%load_ext graphwidget", store_history=True)
    shell.run_cell(FORWARD, store_history=True)
    shell.run_cell(TWICE, store_history=True)
    planned = plan(session.current().trying)
    assert planned.ran.rerun.cells == ("import torch\n!true", "%load_ext graphwidget", FORWARD, TWICE)
    assert "In[1] calls the shell or a cell magic." in planned.lines


def test_a_cell_whose_text_is_gone_cannot_run_again(reused: Trying) -> None:
    finding = reused.tracker().findings()[0]
    reused.tracker().runs.pop(1)
    reused.history = lambda: [""]
    with pytest.raises(CannotTry, match=r"What In\[2\] ran is not known"):
        reused.plan(finding, finding.fixes[0])


def test_advice_cannot_be_tried(reused: Trying) -> None:
    with pytest.raises(CannotTry, match="advice"):
        reused.plan(reused.tracker().findings()[0], Fix("find_the_cut", "Look for the line."))


def test_what_came_of_a_trial_stands_beside_the_fix_and_failures_last(reused: Trying, monkeypatch: Any) -> None:
    asked: list[Ran] = []

    def attempt(ran: Ran, *_: Any) -> Attempt:
        asked.append(ran)
        return Attempt(Trial(False, "raised NameError: y", 1.0), 1.0)

    monkeypatch.setattr("graphwidget.trials.attempt.attempt", attempt)
    first = reused.tracker().findings()[0].fixes[0]
    reused.run(plan(reused))
    shown = reused.shown(reused.tracker().findings())[0].fixes
    assert (shown[-1].id, shown[-1].status, shown[-1].verified) == (first.id, "tried", False)
    assert len(asked) == 1 and len(shown) > 1
    before = reused.tracker().findings()
    session.current().reset()
    assert reused.shown(before) == before


def test_a_click_asks_first_and_can_be_cancelled(reused: Trying, monkeypatch: Any) -> None:
    findings = reused.tracker().findings()
    key, clicked = findings[0].key(findings[0].fixes[0]), Clicked()
    asks, said = clicked.answer(reused, findings, key, 0)
    assert asks is not None and not said and asks["lines"] == list(plan(reused).lines)

    def attempt(_ran: Ran, _finding: Any, _fix: Any, _seconds: float, _whole: float, cancelled: Any) -> Any:
        with pytest.raises(CannotTry, match="already"):
            clicked.answer(reused, findings, key, asks["key"])
        assert clicked.cancel() and cancelled()
        return Attempt(Trial(None, "it was cancelled"), 0.1)

    monkeypatch.setattr("graphwidget.trials.attempt.attempt", attempt)
    _, said = clicked.answer(reused, findings, key, asks["key"])
    assert said.endswith("Not tried to the end: it was cancelled.")
    assert not clicked.cancel() and reused.shown(findings) == findings
    with pytest.raises(LookupError):
        clicked.answer(reused, findings, key + 1, 0)


def test_the_magic_lists_refuses_and_tries(
    reused: Trying, shell: Any, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    passed = Trial(True, "ran to its end in 0.1 s", 0.1)
    monkeypatch.setattr("graphwidget.trials.attempt.attempt", lambda *_: Attempt(passed, 1.0))
    capsys.readouterr()
    shell.run_line_magic("graphwidget", "try")
    assert capsys.readouterr().out.startswith("%graphwidget try 1: ")
    with pytest.raises(UsageError, match="There is no fix `9`"):
        shell.run_line_magic("graphwidget", "try 9")
    shell.run_line_magic("graphwidget", "try 1")
    out = capsys.readouterr().out
    assert "run again in a fresh process" in out and out.endswith("Tried: ran to its end in 0.1 s.\n")
    shell.run_line_magic("graphwidget", "explain")
    assert "Tried: ran to its end in 0.1 s." in " ".join(capsys.readouterr().out.split())


def test_the_page_asks_and_is_answered(reused: Trying, monkeypatch: Any) -> None:
    view = session.current().shared_view()
    replies: list[dict[str, Any]] = []
    monkeypatch.setattr(view._actions, "_send", replies.append)
    passed = Trial(True, "ran to its end in 0.1 s", 0.1)
    monkeypatch.setattr("graphwidget.trials.attempt.attempt", lambda *_: Attempt(passed, 1.0))

    def ask(**arguments: int) -> dict[str, Any]:
        wanted, end = len(replies) + 1, time.monotonic() + 30
        view._actions.handle({"id": wanted, "verb": "try_fix", **arguments})
        while len(replies) < wanted and time.monotonic() < end:
            time.sleep(0.01)
        return replies[-1]

    finding = reused.tracker().findings()[0]
    key = finding.key(finding.fixes[0])
    asks = ask(fix=key)["result"]["asks"]
    assert "run again in a fresh process" in asks["lines"][0]
    assert ask(fix=key, confirmed=asks["key"])["result"]["said"]["text"].endswith("Tried: ran to its end in 0.1 s.")
    assert "Tried: ran to its end in 0.1 s." in view.wire + view.delta
    assert "out of date" in ask(fix=1)["error"]["message"]
