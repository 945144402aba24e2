"""What was asked for: whether fixes are tried at all, and why not."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import psutil

from graphwidget.diagnosis.diagnose import may_have_joined
from graphwidget.diagnosis.wording import without_gradients
from graphwidget.model import Finding
from graphwidget.trials.attempt import Ran
from graphwidget.trials.children import Forks, anew
from graphwidget.trials.effects import Done, Effects
from graphwidget.trials.lineage import wants_cuts, wants_lineage, wants_unpacked, with_lineage
from graphwidget.trials.rerun import Rerun
from graphwidget.trials.trial import Trials, can_be_tried, try_fixes

__all__ = ["Asked", "Tried", "memory_of_this_process"]

_HOOKS_CALLED = "which backward hooks are called"
LONG = 60.0  # seconds that a program may have taken, if it is to run again without being asked for


class Tried(NamedTuple):
    """What came of trials.

    Attributes
    ----------
    findings
        With their fixes as they were tried.
    why_not
        Why there were no trials, as a sentence.
    notes
        Sentences about files that are not as they were.
    """

    findings: tuple[Finding, ...]
    why_not: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """Whether fixes are tried.

    Attributes
    ----------
    wanted
        True: yes; False: no; None: where the program was not seen to do anything that should not happen again.
    rerun, effects
        The program in this process, and what it does to the world around it.
    seconds
        How long each trial may run; see `Trials`.
    forks
        What forks itself for trials; None: each is a new process.
    """

    wanted: bool | None
    rerun: Rerun
    effects: Effects
    seconds: float | None = None
    forks: Forks | None = None

    def with_cells(self, cells: Sequence[str], order: Sequence[int]) -> Asked:
        """The same for a program of cells."""
        return replace(self, rerun=replace(self.rerun, cells=tuple(cells), order=tuple(order)))

    def tried(self, ran: Ran) -> Tried:
        """What came of trials."""
        findings = tuple(ran.findings)
        wants = wants_lineage(ran)
        tries = any(can_be_tried(fix, ran.rerun) for finding in findings for fix in finding.fixes)
        if not wants and not tries:
            return Tried(findings)
        done = self.effects.end()
        launch = self.forks.launch if self.forks is not None else anew
        ran = replace(ran, left=done.left, must_keep=not self.wanted, launch=launch)
        lost = _lost(ran, tries)
        # Hooks alone are no reason to say that something is not known, if nothing failed.
        matters = tries or bool(ran.errors) or wants_cuts(ran)
        why_not = self._why_not(ran, done, lost, tries)
        if why_not:
            return Tried(findings, why_not if matters else "")
        notes: list[str] = []
        try:
            with _interrupts() as cancelled:
                return self._again(ran, wants, lost if matters else "", notes, cancelled)
        except Exception as error:  # the answer is worth more than the trials
            why = f"No fix was tried: that failed ({type(error).__name__}: {error})."
            return Tried(findings, why, tuple(notes))

    def _again(self, ran: Ran, wants: bool, lost: str, notes: list[str], cancelled: Callable[[], bool]) -> Tried:
        """Run the program again, to measure it if it `wants` that, and with its fixes.

        Parameters
        ----------
        lost
            What there is not, if it does not run again; empty: nothing that matters.
        notes
            Takes sentences about files that are not as they were.
        cancelled
            Asked again and again whether to stop.
        """
        count = 0

        def say(fix: str) -> None:
            nonlocal count
            count += 1
            print(f"graphwidget: trial {count}: the program runs again, with a fix in it: {fix}", file=sys.stderr)

        if wants:
            what = f"where values {'stop to be finite' if ran.record.nonfinite else 'leave the graph'}"
            if not wants_cuts(ran):
                lines = "which lines put parameters into modules" if may_have_joined(ran.record) else _HOOKS_CALLED
                still = "which lines freeze what an optimizer holds" if ran.record.held_frozen else lines
                what = "what hooks for saved tensors give back" if wants_unpacked(ran) else still
            print(f"graphwidget: the program runs again, to measure {what}", file=sys.stderr)
            ran, files = with_lineage(ran, self.seconds, cancelled)
            notes += files.notes
            if files.why_not:  # and so it would be in each trial
                why = f"{lost}: the program was to run again, but {files.why_not}." if lost else ""
                return Tried(tuple(ran.findings), why, tuple(notes))
        tried = try_fixes(ran, Trials(self.seconds, say, cancelled, notes.append))
        why = f"{lost}: that was interrupted." if cancelled() and lost else ""
        return Tried(tried, why, tuple(dict.fromkeys(notes)))

    def _why_not(self, ran: Ran, done: Done, lost: str, tries: bool) -> str:
        """Why the program does not run again, and what is lost by that; empty: it runs again."""
        if self.wanted is False:
            return f"{lost} (--no-try)."
        if self.wanted:
            return ""
        if not done.only_files:
            why = f"{done.said}, and that would happen again"
        elif too_much := done.left.too_much():
            why = f"{done.said}; {too_much}"
        elif changed := done.left.changed():
            why = f"{done.said}; {changed} has changed since it ended"
        elif ran.seconds > LONG:
            why = f"the program took {ran.seconds:.0f} s"
        else:
            return ""
        again = f"To {'try them' if tries else 'measure it'} all the same: {self._command('--try')}"
        less = f" (or less of it: {self._command('--timeout', f'{LONG / 2:g}')})" if ran.seconds > LONG else ""
        return f"{lost}: {why}. {again}{less}"

    def _command(self, *options: str) -> str:
        words = ["graphwidget", "explain", *options, *(["-m"] if self.rerun.module else []), self.rerun.target]
        return shlex.join([*words, *self.rerun.arguments])


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Ctrl+C ends what runs again, and nothing more: gives a function that says whether it was pressed."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return
    before = signal.signal(signal.SIGINT, lambda _number, _frame: pressed.set())
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _lost(ran: Ran, tries: bool) -> str:
    """What there is not, if the program does not run again."""
    return "No fix was tried" if tries else f"{_measured(ran)} was not measured"


def _measured(ran: Ran) -> str:
    """What a run for the measurement would show."""
    if ran.record.nonfinite:
        return f"Which step first wrote {ran.record.nonfinite[0].value} into parameters"
    if not wants_cuts(ran) and wants_unpacked(ran):
        return "What hooks for saved tensors gave back"
    if not wants_cuts(ran):
        return "Whether a backward hook was never called"
    starved = without_gradients(ran.record)
    if any(leaf.orphans for leaf in ran.record.unheld) or (not starved and may_have_joined(ran.record)):
        return "Which line put parameters into a module"
    return f"Which lines keep gradients from {starved or 'parameters'}"


def memory_of_this_process() -> int:
    """The most bytes that this process has had resident, as far as the system says."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return int(psutil.Process().memory_info().rss)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
