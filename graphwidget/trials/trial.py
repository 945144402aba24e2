"""Tries the fixes of a program's findings, and puts those that failed behind the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from graphwidget.diagnosis.reuse.reuse import call_at
from graphwidget.model import BackwardCall, Finding, Fix, Trial
from graphwidget.trials.account import Next
from graphwidget.trials.attempt import START, Attempt, Ran, attempt
from graphwidget.trials.cut_findings import failed_by_a_cut
from graphwidget.trials.joined import joined, second_alone
from graphwidget.trials.rerun import Rerun

__all__ = ["MOST_TRIED", "Trials", "can_be_tried", "in_order", "try_fixes", "with_trial", "worth_showing"]

MOST_TRIED = 3
MOST_JOINED = 3  # further trials, of fixes for the errors to which others have led
_FAILED = 2  # the rank of a fix that its trial has shown to be wrong
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
    note
        Called with a sentence about files that are not as they were.
    """

    seconds: float | None = None
    progress: Callable[[str], None] = lambda sentence: None
    cancelled: Callable[[], bool] = lambda: False
    note: Callable[[str], None] = lambda sentence: None


def try_fixes(ran: Ran, how: Trials) -> tuple[Finding, ...]:
    """The findings of a run, with what came of at most three trials. Fixes that passed stand first.

    Of each finding fixes are tried in order until one passes. If none does, and one led to another error, the fix of
    that error is added to it. If trials are left then, the other fixes are tried.
    """
    found = [list(finding.fixes) for finding in ran.findings]
    budget = _Budget(ran, how)
    for until_one_passes in (True, False):
        for finding, fixes in zip(ran.findings, found):
            led: list[tuple[int, tuple[Next, ...]]] = []
            one_of = failed_by_a_cut(finding, call_at(ran.record.calls, finding.call))
            for number, fix in enumerate(fixes):
                enough = until_one_passes or one_of
                if (enough and _any_passed(fixes)) or fix.tried or not can_be_tried(fix, ran.rerun):
                    continue
                if budget.trials <= 0 or how.cancelled():
                    break
                made = budget.spend(finding, fix)
                fixes[number] = with_trial(fix, made.trial)
                led.append((number, made.next))
            for number, after in led if until_one_passes else ():
                if not _any_passed(fixes):
                    fixes[number] = _with_next(budget, finding, fixes[number], after) or fixes[number]
    calls = [call_at(ran.record.calls, one.call) for one in ran.findings]
    return tuple(
        replace(one, fixes=tuple(map(_for_people, in_order(worth_showing(one, call, fixes)))))
        for one, call, fixes in zip(ran.findings, calls, found)
    )


def _for_people(fix: Fix) -> Fix:
    """A fix that was seen not to help keeps the lines that were tried, and no edits: no machine is to make them."""
    return replace(fix, edits=()) if fix.failed else fix


def worth_showing(finding: Finding, call: BackwardCall | None, fixes: list[Fix]) -> list[Fix]:
    """The fixes to show. Where one passed, none that was seen to do harm or not to help; unfinished trials say neither.

    Of lines that may each have cut the graph, the one that passed was it.
    """
    if not _any_passed(fixes):
        return fixes
    left = [fix for fix in fixes if fix.tried is None or fix.tried.ok is not False]
    if failed_by_a_cut(finding, call):
        return [fix for fix in left if fix.tried is not None]
    return left


def _any_passed(fixes: Iterable[Fix]) -> bool:
    return any(fix.tried is not None and fix.tried.passed for fix in fixes)


def _with_next(budget: _Budget, finding: Finding, fix: Fix, after: tuple[Next, ...]) -> Fix | None:
    """A fix with those for the errors to which it leads, one behind the other; None if that does not help either."""
    for one in after:
        whole = joined(budget.ran, fix, one)
        if whole is None:
            continue
        if budget.more <= 0 or budget.how.cancelled():
            return None
        made = budget.spend(finding, whole, joined=True)
        if made.trial.passed:
            return _without_first(budget, finding, fix, one, made.later) or with_trial(whole, made.trial)
        found = _with_next(budget, finding, whole, made.next)
        if found is not None:
            return found
    return None


def _without_first(budget: _Budget, finding: Finding, first: Fix, after: Next, later: Collection[str]) -> Fix | None:
    """What was joined with a fix, if it suffices alone: no leaf loses the gradient that it gets `later` from both."""
    alone = second_alone(budget.ran, first, after) if budget.more > 0 and not budget.how.cancelled() else None
    made = budget.spend(finding, alone, joined=True) if alone is not None else None
    if alone is None or made is None or not made.trial.passed or not set(later) <= set(made.later):
        return None
    return with_trial(alone, made.trial)


def can_be_tried(fix: Fix, rerun: Rerun) -> bool:
    """Whether a machine can make the change of a fix."""
    return bool(fix.edits) or (bool(rerun.cells) and fix.by_machine)


def with_trial(fix: Fix, tried: Trial) -> Fix:
    """The fix with what came of its trial, which says whether it is verified if it decides anything."""
    return replace(fix, tried=tried, verified=bool(tried.ok) if tried.decides else fix.verified)


def in_order(fixes: Iterable[Fix]) -> tuple[Fix, ...]:
    """Fixes as a person should try them: what passed; what was not tried, is a choice or helped partly; what failed.

    What takes a gradient from a trained leaf passes no choice that stood before it and ran: that it runs is no reason.
    """
    ranked: list[tuple[int, Fix]] = []
    for fix in fixes:
        chosen = any(one.tried is not None and one.tried.ok is True and one.tried.choice for _, one in ranked)
        ranked.append((max(1, _rank(fix)) if fix.starves and chosen else _rank(fix), fix))
    return tuple(fix for _, fix in sorted(ranked, key=lambda one: one[0]))


def _rank(fix: Fix) -> int:
    if fix.tried is None or not fix.tried.decides or fix.tried.partly:
        return 1
    return 0 if fix.tried.passed else _FAILED


class _Budget:
    """How many trials, and how many seconds, are left. `more`: trials of joined fixes."""

    def __init__(self, ran: Ran, how: Trials) -> None:
        self.ran, self.how = ran, how
        self.trials, self.more = MOST_TRIED, MOST_JOINED
        self.start = max(START, 2 * ran.rerun.start_seconds)
        self.seconds = how.seconds or max(SECONDS, 2 * ran.seconds)
        self.together = self._left * (self.seconds + self.start if how.seconds else self.start) + 1.5 * ran.seconds

    @property
    def _left(self) -> int:
        return self.trials + self.more

    def spend(self, finding: Finding, fix: Fix, *, joined: bool = False) -> Attempt:
        """Try a fix. Each one that is left after it keeps the time to begin."""
        self.how.progress(fix.text)
        if joined:
            self.more -= 1
        else:
            self.trials -= 1
        whole = max(self.start, min(self.seconds + self.start, self.together - self._left * self.start))
        made = attempt(self.ran, finding, fix, self.seconds, whole, self.how.cancelled)
        self.together -= made.seconds
        for sentence in made.notes:
            self.how.note(sentence)
        if made.last:
            self.trials = self.more = 0
        return made
