"""Cut the graph between the two calls: ``h = h.detach()``."""

from __future__ import annotations

from graphwidget.diagnosis.fixes.cuts.cuts import Cuts
from graphwidget.diagnosis.fixes.second_backward import earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.source import fitting
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import names, no_gradient, short
from graphwidget.engine.what_if import reachable
from graphwidget.model import Fix


def propose(case: Case) -> Fix | None:
    """Cut so that the later call does not reach the old part."""
    reuse, setting = case.reuse, case.setting
    if not reuse.brings_leaves:
        return None  # nothing would be left to reach
    if case.drawn_at_random:
        return None
    cells, cuts = Cells.of(reuse.record), Cuts(case.inner if case.weighs_the_passes else setting)
    possible = [c for c in cuts.for_later() if not c.edits or fitting.possible(cells.texts, c.edits, cells.files)]
    leaves = filter(None, (one.with_leaves() for one in possible))  # where a gradient with respect to them is asked for
    working = next((one for one in (*possible, *leaves) if case.works_if_cut(one)), None)
    made = working or next((one for one in possible if not one.a_guess), None)
    starves = _starved(case)
    if made is None or (made.a_guess and starves):
        return None
    price = cuts.price(made)
    if setting.only_added:
        name = Carrier(setting).name
        price = f"`{name}` only adds a term of its own to the loss: detached, it has no effect on any gradient."
    if case.stays_at_its_first_value:
        trained = setting.leaf_names(i for i in reachable(reuse.graph, reuse.boundary) if i in reuse.graph.leaves)
        stays = f"`{Carrier(setting).name}` then stays at its first value, while {names(tuple(trained))} trains."
        price = f"{price} {stays}".strip()
    return Fix(
        id="detach",
        text=made.sentence,
        verified=working is not None and not case.loop_never_ends,
        at=made.at,
        price=price,
        edits=made.edits,
        starves=starves,
    )


def in_earlier_call(case: Case) -> Fix | None:
    """Cut so that the earlier call does not reach the shared part."""
    made = Cuts(case.setting).for_earlier()
    if made is None:
        return None
    lost = case.setting.leaf_names(case.reuse.exclusive_leaves)
    return Fix(
        id="detach",
        text=made.sentence,
        verified=case.works_if_cut_earlier(made),
        at=made.at,
        price=f"Then {no_gradient(lost, 'from ' + earlier_call.named(case.reuse.earlier))}" if lost else "",
        edits=made.edits,
    )


def in_words(case: Case) -> Fix | None:
    """The same as advice, if no line is known that runs between the two calls and can name the carrier."""
    reuse = case.reuse
    if not reuse.brings_leaves:
        return None
    carrier = Carrier(case.setting)
    what = f"`{carrier.name}`" if carrier.path is not None else "what one pass hands to the next"
    a, b = reuse.earlier.place, reuse.later.place
    # One line of the cell made both calls in one pass: the loop is in the code that it calls.
    one_line = (a.run, a.outer_line, a.iteration) == (b.run, b.outer_line, b.iteration)
    line = b.outer_source or b.source
    inside = f" in the code that {short(line)} calls" if line and one_line else ""
    text = f"Cut the graph between passes: detach {what} after each backward{inside}, before the next pass uses it."
    return Fix(id="detach", text=text, starves=_starved(case))


def _starved(case: Case) -> tuple[str, ...]:
    """Trained leaves that get no gradient from the later call once the old part is cut off.

    If the old part is a term of the loss, these are all leaves behind that term, which is a constant then. In a pass
    that carries a state over there are none: a leaf behind the state alone was reached when the state began. Nor are
    there any where the program drops the gradients, or has trained the old part and goes on with another optimizer.
    """
    reuse, setting = case.reuse, case.setting
    if setting.only_added:
        inside = reachable(reuse.graph, reuse.boundary)
        return setting.leaf_names(index for index in inside if index in reuse.graph.leaves)
    none = setting.carried_state or case.not_for_the_old_part or case.is_for_another_optimizer
    return () if none else setting.leaf_names(reuse.starved)
