"""The pytest plugin: ``pytest --graphwidget``, and the fixture `autograd`.

Without the flag and without the fixture nothing is watched, and torch is not imported.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphwidget.capture.tracker import Tracker
    from graphwidget.model import BackwardCall, Finding

__all__ = ["Autograd"]

SECTION = "autograd"
_WATCHING = "graphwidget-watching"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag."""
    parser.getgroup("graphwidget", "PyTorch's autograd graph").addoption(
        "--graphwidget",
        action="store_true",
        help="watch backward calls, and explain under a failing test what went wrong in the autograd graph",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch every test, if the flag is given."""
    if config.getoption("--graphwidget"):
        config.pluginmanager.register(_Watching(), _WATCHING)


class Autograd:
    """What the fixture `autograd` gives a test: what its backward calls did, and what is wrong with the graph.

    Examples
    --------
    A test that fails if a training step keeps the graphs of its iterations::

        def test_step_keeps_no_graphs(autograd):
            train(steps=5)
            autograd.assert_no_growth()
    """

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    @property
    def calls(self) -> tuple[BackwardCall, ...]:
        """The backward calls of this test so far, oldest first."""
        return self._tracker.calls

    def findings(self) -> tuple[Finding, ...]:
        """What is wrong now: as `graphwidget.explain`."""
        return self._tracker.findings()

    def assert_no_growth(self) -> None:
        """Fail if graphs of several iterations are still alive and pile up.

        Call it while what may keep them is still there: at the end of the test, not after it.

        Raises
        ------
        AssertionError
            It names what keeps the graphs, the line that stores them, and what helps.
        """
        __tracebackhide__ = True
        found = [one for one in self.findings() if one.kind == "leak"]
        if found:
            raise AssertionError("graphs of several iterations pile up\n" + _text(found))


@pytest.fixture
def autograd(request: pytest.FixtureRequest) -> Generator[Autograd, None, None]:
    """Watch the backward calls of this test: `findings()`, `assert_no_growth()` and `calls`."""
    watching: Any = request.config.pluginmanager.get_plugin(_WATCHING)
    tracker = watching.tracker if watching is not None else None
    if tracker is not None:
        yield Autograd(tracker)
        return
    with _tracked(request.node) as tracker:
        yield Autograd(tracker)


class _Watching:
    """Has a tracker for each test, from its set-up to its tear-down."""

    def __init__(self) -> None:
        self.tracker: Tracker | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with _tracked(item) as self.tracker:
            try:
                return (yield)
            finally:
                self.tracker = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        tracker = self.tracker
        if report.failed and call.excinfo is not None and tracker is not None:
            try:
                text = _explanation(tracker, call.excinfo.value)
            except Exception as error:  # the report of the test is not ours to lose
                tracker.problems.note(error)
                text = ""
            if text:
                report.sections.append((SECTION, text))
        return report


@contextmanager
def _tracked(item: pytest.Item) -> Iterator[Tracker]:
    """A tracker that watches a test."""
    from graphwidget.capture.tracker import Tracker
    from graphwidget.diagnosis.diagnose import diagnose
    from graphwidget.engine.forecast import forecast
    from graphwidget.notebook.session import begin_tracking, end_tracking

    module = getattr(item, "module", None)
    variables = vars(module) if module is not None else {}
    tracker = Tracker(lambda: variables, forecaster=forecast, diagnose=diagnose)
    tracker.start()
    tracker.begin_cell(None, "")
    begin_tracking(tracker)
    try:
        yield tracker
    finally:
        end_tracking(tracker)
        tracker.end_cell(sys.exc_info()[1])
        tracker.stop()


def _explanation(tracker: Tracker, error: BaseException) -> str:
    """What is known of the error of a test, and of the graph at that moment; empty where that is nothing."""
    from graphwidget.diagnosis.verdict import verdict
    from graphwidget.render.report import verdict_lines

    tracker.end_cell(error)  # the tear-down is not part of what is explained
    found = [one for one in tracker.findings() if one.severity != "info"]
    if found:
        return _text(found)
    said = verdict(tracker.record(), ())
    return "\n".join(verdict_lines(said)) if said.unexplained else ""


def _text(found: list[Finding]) -> str:
    from graphwidget.render.report import finding_lines

    return "\n\n".join("\n".join(finding_lines(one)) for one in found)
