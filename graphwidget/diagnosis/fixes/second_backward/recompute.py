"""Build the old part again, so that the later call has a graph of its own."""

from __future__ import annotations

from graphwidget.diagnosis.fixes.second_backward import earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.model import Fix

_PRICE = "One more forward pass of that part."


def propose(case: Case) -> Fix | None:
    """Run the statements again that made the old part, where a plan for it is known."""
    plan = case.rerun
    if plan is None:
        return None
    return Fix(
        id="recompute_in_loop",
        text=plan.sentence,
        verified=case.works_if_fresh and plan.sure,
        at=plan.at,
        price=_PRICE,
        edits=plan.edits,
    )


def in_words(case: Case) -> Fix:
    """The same as advice, where the place for an edit is unknown."""
    setting = case.setting
    carrier = setting.root_name if case.reuse.same_root else Carrier(setting).name
    text = f"Compute `{carrier}` in each pass, so that each has a graph of its own."
    if not setting.repeated:
        earlier, later = earlier_call.named(case.reuse.earlier), earlier_call.named(case.reuse.later)
        text = f"Compute `{carrier}` again after {earlier}, so that {later} has a graph of its own."
    return Fix(id="recompute_in_loop", text=text, price=_PRICE)
