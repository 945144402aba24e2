"""Tries the fixes of a program's findings, and puts those that failed behind the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from graphwidget.model import Finding, Fix, Trial
from graphwidget.trials.attempt import START, Ran, attempt
from graphwidget.trials.rerun import Rerun

__all__ = ["MOST_TRIED", "Trials", "can_be_tried", "in_order", "try_fixes", "with_trial"]

MOST_TRIED = 3
SECONDS = 10.0  # that one trial may take, if the program itself took less than half of that


@dataclass(frozen=True)
class Trials:
    """How fixes are tried.

    Attributes
    ----------
    seconds
        How long the program may run in one trial. None: ten, or twice what it took; and all trials together one and a
        half times what it took, and what three processes need to begin.
    progress
        Called with a sentence before each trial.
    cancelled
        Asked again and again whether to stop.
    """

    seconds: float | None = None
    progress: Callable[[str], None] = lambda sentence: None
    cancelled: Callable[[], bool] = lambda: False


def try_fixes(ran: Ran, how: Trials) -> tuple[Finding, ...]:
    """The findings of a run, with what came of at most three trials. Fixes that passed stand first.

    Of each finding fixes are tried in order until one passes; if trials are left then, the others are.
    """
    found = [list(finding.fixes) for finding in ran.findings]
    budget = _Budget(ran, how)
    for until_one_passes in (True, False):
        for finding, fixes in zip(ran.findings, found):
            for number, fix in enumerate(fixes):
                passed = any(one.tried is not None and one.tried.passed for one in fixes)
                if (until_one_passes and passed) or fix.tried is not None or not can_be_tried(fix, ran.rerun):
                    continue
                if budget.is_used_up or how.cancelled():
                    break
                how.progress(fix.text)
                fixes[number] = with_trial(fix, budget.spend(finding, fix))
    return tuple(replace(finding, fixes=in_order(fixes)) for finding, fixes in zip(ran.findings, found))


def can_be_tried(fix: Fix, rerun: Rerun) -> bool:
    """Whether a machine can make the change of a fix."""
    return bool(fix.edits) or (bool(rerun.cells) and fix.by_machine)


def with_trial(fix: Fix, tried: Trial) -> Fix:
    """The fix with what came of its trial, which says whether it is verified if it decides anything."""
    return replace(fix, tried=tried, verified=bool(tried.ok) if tried.decides else fix.verified)


def in_order(fixes: Iterable[Fix]) -> tuple[Fix, ...]:
    """Fixes as a person should try them: what passed; what was not tried, is a choice or helped partly; what failed."""
    return tuple(sorted(fixes, key=_rank))


def _rank(fix: Fix) -> int:
    if fix.tried is None or not fix.tried.decides or fix.tried.partly:
        return 1
    return 0 if fix.tried.passed else 2


class _Budget:
    """How many trials, and how many seconds, are left."""

    def __init__(self, ran: Ran, how: Trials) -> None:
        self.ran, self.how = ran, how
        self.trials = MOST_TRIED
        self.start = max(START, 2 * ran.rerun.start_seconds)
        self.seconds = how.seconds or max(SECONDS, 2 * ran.seconds)
        self.together = MOST_TRIED * (self.seconds + self.start if how.seconds else self.start) + 1.5 * ran.seconds

    @property
    def is_used_up(self) -> bool:
        return self.trials <= 0

    def spend(self, finding: Finding, fix: Fix) -> Trial:
        """Try a fix. Each one that is left after it keeps the time to begin."""
        self.trials -= 1
        whole = max(self.start, min(self.seconds + self.start, self.together - self.trials * self.start))
        tried, seconds = attempt(self.ran, finding, fix, self.seconds, whole, self.how.cancelled)
        self.together -= seconds
        return tried
