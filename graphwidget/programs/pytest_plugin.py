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
    from collections.abc import Callable, Iterator

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

    def __init__(self, tracker: Tracker, told: frozenset[object] = frozenset()) -> None:
        self._tracker = tracker
        self._told = told  # findings of earlier tests
        self._first_call, self._first_uid = tracker.log.count, tracker.identity.given

    @property
    def calls(self) -> tuple[BackwardCall, ...]:
        """The backward calls of this test so far, oldest first."""
        return tuple(call for call in self._tracker.calls if call.n >= self._first_call)

    def findings(self) -> tuple[Finding, ...]:
        """What is wrong now: as `graphwidget.explain`, without what earlier tests did."""
        return tuple(found for found in self._tracker.findings() if self._is_of_this_test(found))

    def _is_of_this_test(self, found: Finding) -> bool:
        if found.call is not None:
            return found.call >= self._first_call
        if found.uids:
            return max(found.uids) >= self._first_uid
        return _key(found) not in self._told

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

    def explanation(self, error: BaseException) -> str:
        """What is known of the error of the test, and of the graph at that moment; empty where that is nothing."""
        from graphwidget.diagnosis.verdict import verdict
        from graphwidget.render.report import verdict_lines

        self._tracker.end_cell(error)  # the tear-down is not part of what is explained
        found = [one for one in self.findings() if one.severity != "info"]
        if found:
            return _text(found)
        said = verdict(self._tracker.record(), ())
        return "\n".join(verdict_lines(said)) if said.unexplained else ""


@pytest.fixture
def autograd(request: pytest.FixtureRequest) -> Generator[Autograd, None, None]:
    """Watch the backward calls of this test: `findings()`, `assert_no_growth()` and `calls`."""
    watching: Any = request.config.pluginmanager.get_plugin(_WATCHING)
    if watching is not None and watching.test is not None:
        yield watching.test
        return
    tracker = _tracker(lambda: _variables(request.node))
    with _tracked(tracker):
        yield Autograd(tracker)


class _Watching:
    """Has one tracker for all tests: what one test has stored, in a fixture or a module, a later one may fail with."""

    def __init__(self) -> None:
        self.test: Autograd | None = None  # the one that runs
        self._tracker: Tracker | None = None
        self._variables: dict[str, Any] = {}
        self._told: frozenset[object] = frozenset()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        tracker = self._tracker = self._tracker or _tracker(lambda: self._variables)
        self._variables = _variables(item)
        with _tracked(tracker):
            self.test = Autograd(tracker, self._told)
            try:
                return (yield)
            finally:
                if self.test.calls:
                    self._told = frozenset(map(_key, tracker.findings()))
                self.test = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and call.excinfo is not None and self.test is not None and self._tracker is not None:
            try:
                text = self.test.explanation(call.excinfo.value)
            except Exception as error:  # the report of the test is not ours to lose
                self._tracker.problems.note(error)
                text = ""
            if text:
                report.sections.append((SECTION, text))
        return report


def _variables(item: pytest.Item) -> dict[str, Any]:
    module = getattr(item, "module", None)
    return vars(module) if module is not None else {}


def _tracker(variables: Callable[[], dict[str, Any]]) -> Tracker:
    from graphwidget.capture.tracker import Tracker
    from graphwidget.diagnosis.diagnose import diagnose
    from graphwidget.engine.forecast import forecast

    return Tracker(variables, forecaster=forecast, diagnose=diagnose)


@contextmanager
def _tracked(tracker: Tracker) -> Iterator[None]:
    """Watch a test, from its set-up to its tear-down."""
    from graphwidget.notebook.session import begin_tracking, end_tracking

    tracker.start()
    tracker.begin_cell(None, "")
    begin_tracking(tracker)
    try:
        yield
    finally:
        end_tracking(tracker)
        tracker.end_cell(sys.exc_info()[1])
        tracker.stop()


def _key(found: Finding) -> object:
    return (found.kind, found.names, found.cause)


def _text(found: list[Finding]) -> str:
    from graphwidget.render.report import finding_lines

    return "\n\n".join("\n".join(finding_lines(one)) for one in found)
