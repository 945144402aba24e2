"""Build the old part again, so that the later call has a graph of its own."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.rerun.rerun import Rerun
from graphwidget.diagnosis.fixes.second_backward import detach, earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short
from graphwidget.engine.what_if import reachable
from graphwidget.model import Fix, Write

_PRICE = "One more forward pass of that part."


def propose(case: Case) -> Fix | None:
    """Run the statements again that made the old part, where a plan for it is known."""
    plan = case.rerun or (_behind_the_step(case) if case.stays_at_its_first_value else None)
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


def or_cut(case: Case) -> Fix | None:
    """Cut between passes what one of them made; None where it is out of date, and can be computed again."""
    again = propose(case) if case.is_of_old_weights else None
    return detach.propose(case) if again is None or not again.edits else None


def _behind_the_step(case: Case) -> Rerun | None:
    """Compute an attribute again behind the step that changes what it is computed of: ``self.alpha = self.log.exp()``.

    A constructor may give it in a branch only, and the step is in a branch of its own.
    """
    reuse, cells = case.reuse, Cells.of(case.reuse.record)
    spot = at(reuse.carrier_place)
    steps = {found for write in reuse.steps_between if _changes(case, write) and (found := at(write.place)) is not None}
    made = cells.statement(spot) if spot is not None else None
    if spot is None or not isinstance(made, ast.Assign) or len(steps) != 1:
        return None
    (step,) = steps
    one = syntax.function_at(cells.text(spot[0]), spot[1])
    other = syntax.function_at(cells.text(step[0]), step[1])
    own = {name for name in syntax.names_in(made.value) if one is not None and name in syntax.bound(one[1])} - {"self"}
    fields = all(target.startswith("self.") for target in syntax.targets(made))
    if one is None or other is None or step[0] != spot[0] or one[0] is None or one[0] is not other[0]:
        return None
    text, stepping = cells.text(step[0]), cells.statement(step)
    arguments = {node.arg for node in ast.walk(one[1]) if isinstance(node, ast.arg)} - {"self"}
    if own or not fields or stepping is None or hasattr(stepping, "body") or arguments & syntax.names_in(made.value):
        return None
    what = f"{short(ast.unparse(made))} (In[{spot[0]}], line {spot[1]})"
    return Rerun(
        f"Compute {what} again behind {short(ast.unparse(stepping))} (In[{step[0]}], line {step[1]}), which changes "
        "what it is computed of: each pass then has a new value, and a graph of its own.",
        step,
        text_edit.insert_after(step[0], text, stepping, [ast.unparse(made)]),
    )


def _changes(case: Case, write: Write) -> bool:
    graph = case.reuse.graph
    inside = reachable(graph, case.reuse.boundary)
    return any(write.is_to(graph.leaves[i]) for i in inside if i in graph.leaves)


def in_words(case: Case) -> Fix:
    """The same as advice, where the place for an edit is unknown."""
    setting = case.setting
    carrier = setting.root_name if case.reuse.same_root else Carrier(setting).name
    text = f"Compute `{carrier}` in each pass, so that each has a graph of its own."
    if not setting.repeated:
        earlier, later = earlier_call.named(case.reuse.earlier), earlier_call.named(case.reuse.later)
        text = f"Compute `{carrier}` again after {earlier}, so that {later} has a graph of its own."
    return Fix(id="recompute_in_loop", text=text, price=_PRICE)
