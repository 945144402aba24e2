"""Trying a fix from the notebook: the recorded cells run again in a fresh process, with the fix in them.

The kernel is only read. A `Plan` says first which cells run again and what happens again; what came of a trial is
remembered and stands beside the fix from then on.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from graphwidget.model import CellError, CellRun, Finding, Fix, Trial

if TYPE_CHECKING:
    from graphwidget.capture.tracker import Tracker
    from graphwidget.trials.attempt import Ran
    from graphwidget.trials.rerun import Rerun

__all__ = ["CannotTry", "Clicked", "Plan", "Trying"]

SECONDS = 10.0  # that the cells may take, if they took less than half of that before
START = 30.0  # seconds that a process may take to begin: somebody waits for it, and can cancel it
_MOST_CELLS = 12  # that a sentence lists


class CannotTry(Exception):
    """A fix that cannot be tried here; the message says why."""


@dataclass(frozen=True)
class Plan:
    """A trial that is about to run.

    Attributes
    ----------
    finding, fix
        What is tried.
    ran
        The cells, and what is known of their run.
    lines
        What is to be said before.
    """

    finding: Finding
    fix: Fix
    ran: Ran
    lines: tuple[str, ...]

    @property
    def key(self) -> int:
        """Names this very plan: a confirmation of another one does not count."""
        return zlib.crc32(repr((self.finding.key(self.fix), self.lines)).encode())


@dataclass(frozen=True)
class _Step:
    """One run of a cell, which becomes one step of the program that is tried."""

    number: int
    source: str
    run: CellRun | None = None


@dataclass
class Trying:
    """The trials of one extension.

    Attributes
    ----------
    tracker, history
        What was recorded, and the texts of cells by their numbers.
    rerun
        How the kernel was when the extension was loaded.
    running
        The numbers of cells that run now.
    seconds
        How long cells took, by their numbers.
    """

    tracker: Callable[[], Tracker]
    history: Callable[[], Sequence[str]]
    running: Callable[[], Sequence[int | None]]
    rerun: Rerun
    seconds: dict[int, float] = field(default_factory=dict)
    _done: dict[int, Trial] = field(default_factory=dict)

    def shown(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Findings with what came of trials; fixes that failed stand last."""
        if not self._done:
            return tuple(findings)
        from graphwidget.trials.trial import in_order, with_trial

        return tuple(
            replace(
                one,
                fixes=in_order(
                    with_trial(fix, self._done[key]) if (key := one.key(fix)) in self._done else fix
                    for fix in one.fixes
                ),
            )
            for one in findings
        )

    def forget(self) -> None:
        """Forget what came of trials: calls are counted from the beginning again."""
        self._done.clear()

    def plan(self, finding: Finding, fix: Fix) -> Plan:
        """What a trial would run.

        Raises
        ------
        CannotTry
            If it cannot.
        """
        from graphwidget.trials.asked import memory_of_this_process
        from graphwidget.trials.attempt import Ran

        if not fix.by_machine:
            raise CannotTry("This fix is advice: there is no edit that could be tried.")
        tracker = self.tracker()
        record = tracker.record()
        call = next((one for one in record.calls if one.n == finding.call), None)
        if finding.call is not None and call is None:
            raise CannotTry("The call that failed is not remembered any more.")
        if call is not None and call.place.button:
            raise CannotTry("A button made the call that failed, and no cell does: running cells again shows nothing.")
        at = call.place if call is not None else (finding.failed_at or finding.made_at)
        last = at.run if at is not None and finding.severity == "error" else None
        steps = self._steps(record.runs, last)
        buttons = sum(one.place.button for one in record.calls)
        seconds = sum(self.seconds.get(step.number, 0.0) for step in steps)
        rerun = replace(
            self.rerun,
            target="notebook.ipynb",
            cells=tuple(step.source for step in steps),
            order=tuple(range(1, len(steps) + 1)),
            notebook=True,
        )
        at_step = {step.number: position for position, step in enumerate(steps, 1)}
        ran = Ran(
            rerun,
            record,
            tracker.findings(),
            _errors(steps),
            tracker.log.count,
            seconds,
            events=tracker.events,
            memory=memory_of_this_process(),
            cell_of=lambda number: at_step.get(number) if number is not None else None,
        )
        return Plan(finding, fix, ran, tuple(_lines(steps, seconds, buttons)))

    def run(self, plan: Plan, cancelled: Callable[[], bool] = lambda: False) -> Trial:
        """Try a fix, in any thread. It takes long, and nothing of the kernel changes."""
        from graphwidget.trials.attempt import attempt

        seconds = max(SECONDS, 2 * plan.ran.seconds)
        made = attempt(plan.ran, plan.finding, plan.fix, seconds, seconds + START, cancelled)
        said = (made.trial.why, *(note.removesuffix(".") for note in made.notes))
        tried = replace(made.trial, why=". ".join(said))
        if not cancelled():
            self._done[plan.finding.key(plan.fix)] = tried
        return tried

    def _steps(self, runs: Mapping[int, CellRun], last: int | None) -> list[_Step]:
        """The runs of cells up to one (None: all), in order; those before the extension was loaded from the history."""
        busy, history = set(self.running()), self.history()
        steps: list[_Step] = []
        known = 0  # the highest number so far
        for n, run in sorted(runs.items()):
            if n < 0 or run.cell is None or run.cell in busy or (last is not None and n > last):
                continue
            for number in range(known + 1, run.cell):
                if number >= len(history) or not history[number]:
                    raise CannotTry(f"What In[{number}] ran is not known, so the cells cannot be run again.")
                steps.append(_Step(number, history[number]))
            known = max(known, run.cell)
            steps.append(_Step(run.cell, run.source, run))
        if not steps:
            raise CannotTry("No cells are recorded here that could be run again.")
        return steps


class Clicked:
    """The trial that a view's button has begun: one at a time."""

    def __init__(self) -> None:
        self._running = threading.Lock()
        self._cancelled = threading.Event()

    def cancel(self) -> bool:
        """Stop the running trial; whether there is one."""
        self._cancelled.set()
        return self._running.locked()

    def answer(
        self, trying: Trying, findings: Sequence[Finding], key: int, confirmed: int
    ) -> tuple[dict[str, object] | None, str]:
        """The question before a trial, if `confirmed` is not the key of that question; else what came of the trial.

        Raises
        ------
        LookupError
            If there is no such fix.
        CannotTry
            If it cannot be tried, or another is being tried.
        """
        found = [(finding, fix) for finding in findings for fix in finding.fixes if finding.key(fix) == key]
        if not found:
            raise LookupError(key)
        plan = trying.plan(*found[0])
        if confirmed != plan.key:
            return {"key": plan.key, "title": "This fix can be tried", "lines": list(plan.lines)}, ""
        if not self._running.acquire(blocking=False):
            raise CannotTry("A fix is being tried already: wait, or cancel that.")
        try:
            self._cancelled.clear()
            tried = trying.run(plan, self._cancelled.is_set)
        finally:
            self._running.release()
        return None, f"{plan.fix.text} {tried.sentence}"


def _errors(steps: Sequence[_Step]) -> list[CellError]:
    found = []
    for position, (number, run) in enumerate(((step.number, step.run) for step in steps), 1):
        if run is not None and run.error_type is not None:
            line = run.error_place.line if run.error_place is not None else None
            message = run.error or ""
            found.append(CellError(position, number, number, line, run.error_type, message, place=run.error_place))
    return found


def _lines(steps: Sequence[_Step], seconds: float, buttons: int) -> list[str]:
    """What happens, in sentences."""
    cells = _listed([step.number for step in steps])
    took = f" They took {seconds:.1f} s here." if seconds else ""
    lines = [
        f"{cells} {'runs' if len(steps) == 1 else 'run'} again in a fresh process, with the fix, three backward calls "
        f"further at most.{took}",
        "This kernel's variables stay as they are, and so do your cells and files.",
        "Files that these cells write are put back afterwards. What they send or start, they send or start again.",
    ]
    shell = [
        step.number for step in steps if any(line.lstrip().startswith(("!", "%%")) for line in step.source.split("\n"))
    ]
    if shell:
        lines.append(f"{_listed(shell)} {'calls' if len(shell) == 1 else 'call'} the shell or a cell magic.")
    if buttons:
        lines.append("What you ran with buttons does not run again.")
    return lines


def _listed(numbers: Sequence[int]) -> str:
    names = [f"In[{number}]" for number in numbers]
    if len(names) > _MOST_CELLS:
        return f"{', '.join(names[: _MOST_CELLS - 1])}, … and {names[-1]} ({len(names)} cells)"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
