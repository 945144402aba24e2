"""Keep the graph: ``loss.backward(retain_graph=True)`` in the earlier call."""

from __future__ import annotations

from graphwidget.diagnosis.fixes.second_backward import earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case, kept_bytes
from graphwidget.diagnosis.fixes.second_backward.sum_losses import between
from graphwidget.diagnosis.wording import at, root_name
from graphwidget.model import Fix, bytes_text


def propose(case: Case) -> Fix:
    """Retain what the earlier call frees."""
    place = case.reuse.earlier.place
    price = f"{bytes_text(kept_bytes(case.reuse))} of saved tensors stay until the graph goes."
    if case.setting.in_loop:
        price += " The last iteration need not retain."
    if case.reuse.same_call:
        price += " `.grad` then gets the same once more, unless it is cleared in between."
    if case.runs_a_term_first:
        term, cleared = root_name(case.reuse.earlier), between(case)[1]
        price += f" The gradient of `{term}` then counts twice." if not cleared else ""
    how = "choose `retain_graph=True` with that button" if place.button else "pass `retain_graph=True` there"
    return Fix(
        id="retain_graph_earlier_call",
        text=f"Keep what {earlier_call.named(case.reuse.earlier)} frees: {how}.",
        verified=case.works_if_retained and not case.next_pass_needs_it and not case.loop_never_ends,
        at=at(place),
        price=price,
        edits=earlier_call.with_keyword(case.setting, "retain_graph=True"),
        by_hand=place.button,
    )


def in_spite_of_steps(case: Case) -> Fix | None:
    """The same where the optimizers have modified nothing that the later call needs: each steps its own head.

    Not where a step has modified a leaf of the old part: the kept graph holds what was computed from its old value.
    """
    fix = propose(case) if case.reuse.steps_between and not case.reuse.steps_modified_the_old_part else None
    return fix if fix is not None and fix.verified else None
