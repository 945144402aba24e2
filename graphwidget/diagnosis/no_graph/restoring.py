"""What to say of a line that leaves the graph, and the edit after which it does not."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes import as_tensors, handed_over, restore_graph
from graphwidget.diagnosis.no_graph.applied import APPLY, applied_at
from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.cutting import CUTTING
from graphwidget.diagnosis.no_graph.grad_mode import training_mode
from graphwidget.diagnosis.no_graph.grad_mode.context_managers import not_put_back
from graphwidget.diagnosis.no_graph.grad_mode.left_early import left_early
from graphwidget.diagnosis.no_graph.leaves import by_hand
from graphwidget.diagnosis.no_graph.leaves.written import new_instead
from graphwidget.diagnosis.no_graph.measured import CHECKPOINT, TAKING, is_measured
from graphwidget.diagnosis.no_graph.numbers.round_trips import is_wider, with_torch
from graphwidget.diagnosis.no_graph.origins import Cut, Kept
from graphwidget.diagnosis.no_graph.twins import twin_fix
from graphwidget.diagnosis.no_graph.values import Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.source.pytorch.checkpoints import without_reentrance
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.diagnosis.wording import place_of, short, source_line, where
from graphwidget.model import INTO_A_LEAF, INTO_A_TENSOR, CellRun, Fix, Record

__all__ = ["IN_A_LEAF", "cause_of", "in_a_leaf"]

_WHY = {
    "detach": "`detach` cuts it",
    "detach_": "`detach_` cuts it",
    "data": "`.data` cuts it",
    "item": "`item` makes a Python number",
    "tolist": "`tolist` makes Python numbers",
    "numpy": "`numpy` makes an array",
    "tensor": "`torch.tensor` makes a new leaf",
    "Parameter": "`nn.Parameter` makes a new leaf",
    INTO_A_LEAF: "it writes only the values into a leaf",
    INTO_A_TENSOR: "it writes only the values, and no graph records the write",
    "indices": "indices have no derivative",
}

# What to do where a leaf takes the values.
IN_A_LEAF = {
    "Parameter": "Use what was computed itself, and make no parameter of it",
    INTO_A_LEAF: "Put what was computed itself in the place of the leaf, or hand it to `torch.func.functional_call`",
    INTO_A_TENSOR: "Compute a new tensor instead of this write, and go on with that",
}


def in_a_leaf(cut: Cut) -> str:
    """What to do where a leaf takes the values, as a sentence."""
    place = place_of(cut.run, cut.statement.lineno)
    handed = handed_over.handed_over(cut.run.cell, cut.run.source, cut.statement) if cut.by == INTO_A_LEAF else None
    value = handed_over.value_of(cut.statement) if cut.by == INTO_A_LEAF else ""
    if handed is not None:
        return (
            f"Call `{handed.module}` with a `{handed.weight}` that has {short(value)} itself in it, by "
            f"`torch.func.functional_call` ({where(place)})."
        )
    if value:
        return (
            f"Put {short(value)} itself into what is computed from that parameter, by `torch.where` in the forward; or "
            f"hand the module a new weight that has it, by `torch.func.functional_call` ({where(place)})."
        )
    return f"{IN_A_LEAF[cut.by]} ({where(place)})."


def cause_of(record: Record, cut: Cut) -> Cause:
    """Return the cause for a cut."""
    cut = cut._replace(sure=cut.sure or is_measured(record, cut))
    run, statement = cut.run, cut.statement
    applied = applied_at(record, run, statement) if cut.by == APPLY else None
    if applied is not None:
        return Cause(applied.text, applied.fix, applied.place)
    if cut.by == CHECKPOINT:
        return _checkpointed(record, cut)
    if cut.around is not None:
        return _gradless(record, cut) if cut.kept is None else _kept(cut, cut.kept)
    if (
        cut.by in ("detach", "data")
        and (updated := by_hand.replaced(record, cut.run, cut.statement, sure=cut.sure)) is not None
    ):
        return updated
    place = place_of(run, statement.lineno)
    why = _WHY.get(cut.by, f"`{cut.by}` has no derivative")
    sure = "" if cut.sure else ", if what it reads had one"
    if cut.by == INTO_A_LEAF and (value := handed_over.value_of(statement)):
        why = f"it writes only the values of {short(value)} into a part of a parameter that is not trained"
    text = f"{short(ast.unparse(statement))} ({where(place)}) leaves the graph{sure}: {why}."
    if cut.by == INTO_A_TENSOR:
        return Cause(text, new_instead(record, cut), place)
    edits = restore_graph.without(run.cell, run.source, statement, cut.by)
    works = (
        cut.sure
        and cut.alone
        and bool(edits)
        and restore_graph.trains(record.runs.values(), source.names_in(statement))
    )
    shown = ".data" if cut.by == "data" else cut.by
    sentence = f"Compute the loss without `{shown}` ({where(place)})."
    if cut.by in IN_A_LEAF:
        sentence = in_a_leaf(cut)
    stacked, stacking = restore_graph.stacked(run.cell, run.source, statement) if cut.by == "tensor" else ("", ())
    if not stacking and cut.by == "tensor" and is_measured(record, cut):  # so there are tensors in what it is given
        stacking = as_tensors.edits(run.cell, run.source, statement)
        stacked = stacking[0].new if stacking else ""
    if stacking:
        sentence, edits = f"Write {short(stacked)} in place of `torch.tensor` ({where(place)}).", stacking
    trip = with_torch(record, run, statement) if cut.by in (*TAKING, "detach") else None
    if trip is not None and ((not edits and cut.by in TAKING) or is_wider(trip, edits)):
        return Cause(text, trip, place)
    if (twin := twin_fix(record, run, statement, cut.by)) is not None:
        return Cause(text, twin, place)
    return Cause(
        text, Fix(CUTTING.get(cut.by, "differentiable_op"), sentence, works, line_of(place), edits=edits), place
    )


def _checkpointed(record: Record, cut: Cut) -> Cause:
    """Return the cause for a line that calls a re-entrant checkpoint of which no input required grad."""
    run, statement = cut.run, cut.statement
    place = place_of(run, statement.lineno)
    calls = (one for one in ast.walk(statement) if isinstance(one, ast.Call))
    called = [(run, one) for one in calls if source.last_name(ast.unparse(one.func)).startswith("checkpoint")]
    latest = Cells.of(record).latest
    edits = without_reentrance(latest, called)
    asking = next((one for one in latest if not called and edits and one.cell == edits[0].cell), None)
    spot = place_of(asking, edits[0].start[0]) if asking is not None else place
    text = (
        f"{short(ast.unparse(statement))} ({where(place)}) runs a re-entrant checkpoint: without a graph of what is "
        "inside. That it has one is recorded only if a tensor that it is given requires grad, and none did, whatever "
        "the parameters inside do."
    )
    words = f"Use `use_reentrant=False` ({where(spot)}): that records what the parameters inside need."
    return Cause(text, Fix("use_reentrant_false", words, False, line_of(spot), edits=edits), spot)


def _gradless(record: Record, cut: Cut) -> Cause:
    """Return the cause for a statement that ran in a block or function without grad mode."""
    run, statement, outer, name = cut.run, cut.statement, cut.around or cut.statement, cut.by
    place, what = place_of(run, statement.lineno), short(ast.unparse(statement))
    if (updated := by_hand.replaced(record, run, statement, f"ran under `{name}`", sure=cut.sure)) is not None:
        return updated
    if isinstance(outer, ast.With) and not any(map(grad_modes.switches, grad_modes.expressions(outer))):
        return _inside_another(cut, outer)
    first, names = restore_graph.feeding(outer, statement)
    line = outer.lineno
    edits: text_edit.Edits = ()
    moved: list[ast.stmt] = [statement]
    if isinstance(outer, ast.With):
        first = restore_graph.first_trained(record.runs.values(), outer.body, first)
        edits = restore_graph.out_of_with(run.cell, run.source, outer, first) or _enabled(run, outer, name)
        moved = [s for s in outer.body if s.lineno >= first.lineno]
    elif isinstance(outer, ast.FunctionDef):
        line, edits = restore_graph.without_decorator(run.cell, run.source, outer, name) or (line, edits)
        moved = outer.body
    elif isinstance(outer, ast.Expr):
        return _for_good(record, cut, outer)
    at = (run.cell, line) if run.cell is not None else None
    decides, answer = grad_modes.condition(name) or ("", False)
    about = (decides,) if decides else ()
    values = Values([one for _, one in sorted(record.runs.items())])
    off = training_mode.switched_off(values) if decides.endswith(".training") and not answer else []
    since = ""
    if len(off) == 1:
        switched = place_of(off[0].run, off[0].call.lineno)
        by = f"`{decides}` is false since {short(switched.source)} ({where(switched)})"
        since = f"no graph was built. {by}." if cut.sure else f"no graph was built, if {by}."
        if (back := training_mode.put_back(values, off)) is not None:
            return Cause(f"{what} ran under `{name}` ({where(place)}): {since}", back, switched, about)
    if not cut.sure and decides:
        sentence = (
            f"Check `{decides}` (In[{run.cell}], line {line}): where it is {str(answer).lower()}, no graph is built."
        )
        text = (
            f"{what} ran under `{name}` ({where(place)}): no graph was built, if `{decides}` was {str(answer).lower()}."
        )
        return Cause(text, Fix("remove_no_grad", sentence, False, at), place, about)
    works = cut.sure and restore_graph.trains(record.runs.values(), names)
    works = works and restore_graph.meant_to_train(record.runs.values(), moved)
    sentence = f"Take {what} out of `{name}` (In[{run.cell}], line {line})."
    if since:
        sentence += " The model stays in evaluation mode then: no dropout, and fixed statistics."
    text = f"{what} ran under `{name}` ({where(place)}): {since or 'no graph was built.'}"
    inside = Values(list(record.runs.values())).switching.get(name.split("(")[0].rsplit(".", 1)[-1])
    if inside is not None and isinstance(outer, ast.FunctionDef):  # a decorator of the user's own
        place, at = place_of(inside[0], inside[1].lineno), None
        text = f"{what} runs in what `@{name}` decorates, and that is called under {short(place.source.rstrip(':'))} "
        text += f"({where(place)}): no graph was built."
        sentence = f"Drop `@{name}` (In[{run.cell}], line {line})."
    fix = Fix("remove_no_grad", sentence, works, at, edits=edits)
    return Cause(text, fix, place, about)


def _kept(cut: Cut, kept: Kept) -> Cause:
    """Return the cause for a value that was made once, without grad mode, and is used where the graph is recorded."""
    place, around = place_of(kept.run, kept.statement.lineno), place_of(cut.run, cut.statement.lineno)
    text = (
        f"{short(ast.unparse(kept.statement))} ({where(place)}) runs once, and its result is kept for later calls. "
        f"It ran under `{cut.by}` ({where(around)}), so what is kept has no graph."
    )
    plan = kept.plan
    fix = Fix(
        "recompute_in_loop", plan.sentence, False, plan.at, "One more forward pass of that part.", edits=plan.edits
    )
    return Cause(text, fix, place)


def _enabled(run: CellRun, outer: ast.With, name: str) -> text_edit.Edits:
    """Leave grad mode on in a block out of which no statement can be taken as it stands."""
    switches = [item.context_expr for item in outer.items if ast.unparse(item.context_expr) == name]
    return text_edit.replace_node(run.cell, run.source, switches[0], "torch.enable_grad()") if switches else ()


def _inside_another(cut: Cut, outer: ast.With) -> Cause:
    """Return the cause for a statement in a block of the program's own kind, which does other things, too."""
    run, statement = cut.run, cut.statement
    place, what = place_of(run, statement.lineno), short(ast.unparse(statement))
    on = "with torch.enable_grad():"
    last = statement.end_lineno or statement.lineno
    new = [on, *(f"    {line}" for line in text_edit.statement_lines(run.source, statement))]
    edits = text_edit.replace_lines(run.cell, run.source, statement.lineno, last, new)
    block = where(place_of(run, outer.lineno))
    text = f"{what} ({where(place)}) ran in `{cut.by}` ({block}), which switches grad mode "
    fix = Fix("remove_no_grad", f"Put {what} ({where(place)}) under `{on}`", False, line_of(place), edits=edits)
    return Cause(f"{text}off: no graph was built.", fix, place)


def _for_good(record: Record, cut: Cut, outer: ast.Expr) -> Cause:
    """Return the cause for a statement that ran after another had switched grad mode off: no block shows where."""
    run, statement = cut.run, cut.statement
    there = cut.switched or run
    switch, place = place_of(there, outer.lineno), place_of(run, statement.lineno)
    off = short(ast.unparse(outer))
    text = f"{off} ({where(switch)}) switched grad mode off"
    early = not_put_back(there, outer) or left_early(there, outer, by_error=cut.sure)
    if early is not None:
        text += early.text
    if statement is not outer:
        text += f". {short(ast.unparse(statement))} ({where(place)}) ran then"
    text += ": no graph was built."
    failed = next((call for call in reversed(record.calls) if call.result == "raised"), None)
    if failed is not None and any(
        call.result == "ok" and source_line(call.place) == source_line(failed.place) for call in record.calls
    ):
        text += " Earlier passes had one."
    if early is not None:
        return Cause(text, early.fix(), switch)
    edits = text_edit.remove(there.cell, there.source, outer)
    fix = Fix("remove_no_grad", f"Remove {off} ({where(switch)}).", False, line_of(switch), edits=edits)
    return Cause(text, fix, switch)
