"""A ladder of questions: the first whose answer is yes decides which fixes are proposed, and in which order.

The ladders themselves are data, in `graphwidget.diagnosis.fixes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from graphwidget.diagnosis.fixes.second_backward import detach, recompute, retain
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.model import Fix

__all__ = ["Ladder", "Propose", "Rung", "climb", "fixes_of", "only_if"]

Propose = Callable[[Case], Fix | None]  # one fix, simulated; None where it makes no sense


@dataclass(frozen=True)
class Rung:
    """One question.

    Attributes
    ----------
    asks
        The question.
    proposals
        The fixes to propose if the answer is yes, in the order in which a person should try them.
    reason
        Why these fixes, and why in this order.
    """

    asks: Callable[[Case], bool]
    proposals: tuple[Propose, ...]
    reason: str


Ladder = tuple[Rung, ...]


def only_if(asks: Callable[[Case], bool], ladder: Ladder) -> Ladder:
    """The rungs of a ladder, each with one more question before its own."""
    return tuple(replace(rung, asks=_both(asks, rung.asks)) for rung in ladder)


def _both(first: Callable[[Case], bool], second: Callable[[Case], bool]) -> Callable[[Case], bool]:
    return lambda case: first(case) and second(case)


def climb(ladder: Ladder, case: Case) -> tuple[Propose, ...]:
    """The proposals of the first rung whose answer is yes."""
    return next((rung.proposals for rung in ladder if rung.asks(case)), ())


def fixes_of(ladder: Ladder, case: Case) -> tuple[Fix, ...]:
    """The fixes for a second backward, in order; those that take a gradient from a trained leaf stand last.

    If none of them works, the graph is kept in spite of a step, or advice is given in words.
    """
    fixes = [fix for propose in climb(ladder, case) if (fix := propose(case)) is not None]
    setting = case.setting
    again = case.reuse.same_call and setting.called_by_callee  # kept or made again, it would add the same once more
    constant = any(fix.id == "create_graph" for fix in fixes)  # so would be a gradient that the loss is made of
    if fixes and (again or constant):
        return tuple(fixes)
    if not any(fix.verified for fix in fixes) and not (setting.carried_state or setting.made_in_same_pass):
        fixes += filter(None, [retain.in_spite_of_steps(case)])
    if not any(fix.verified and not fix.starves for fix in fixes):
        lasts = setting.made_in_same_pass and not case.reuse.starved and not setting.only_added
        if not (setting.carried_state or lasts) or case.drawn_at_random:
            fixes += filter(None, [recompute.in_words(case)])
        elif not any(fix.id == "detach" and fix.verified for fix in fixes):
            fixes += filter(None, [detach.in_words(case)])
    return tuple(sorted(fixes, key=lambda fix: (bool(fix.starves), bool(fix.starves) and not fix.verified)))
