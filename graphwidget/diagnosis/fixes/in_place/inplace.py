"""Fixes for a backward that needs a saved tensor which was modified in place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from graphwidget.diagnosis.fixes.in_place.copies import lines_computing, read_a_copy, saved_behind, savers, second_name
from graphwidget.diagnosis.fixes.in_place.handed_in import handed_in
from graphwidget.diagnosis.fixes.in_place.in_hooks import in_hook
from graphwidget.diagnosis.fixes.in_place.step_later import adds_to_its_gradients, step_later
from graphwidget.diagnosis.fixes.in_place.writes import another_write, works_without
from graphwidget.diagnosis.fixes.remedies import (
    COPY,
    Remedy,
    Scoped,
    before_the_call,
    copied,
    is_of_element,
    modified,
    read_as_a_copy,
    reading,
    reading_field,
    reading_where_saved,
    scoped,
    taken_as_a_copy,
    written_as,
)
from graphwidget.diagnosis.fixes.rerun.plan import rerun
from graphwidget.diagnosis.fixes.second_backward import detach, recompute
from graphwidget.diagnosis.fixes.second_backward.case import Case, simulate
from graphwidget.diagnosis.reuse import blame
from graphwidget.diagnosis.reuse.inplace_modules import expression, makes
from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place import statements as inplace_statements
from graphwidget.diagnosis.source.in_place import temporaries
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, lines_of, outer_at, root_name, short, source_line, where
from graphwidget.engine.what_if import reachable, with_nothing_stale
from graphwidget.model import BackwardCall, Fix, Kind, ModuleCall, Place, Record, Snapshot, Write

_ONCE_MORE = "One more forward pass."
MOST_WRITES = 4  # that one fix rewrites


def for_inplace(
    record: Record,
    call: BackwardCall,
    graph: Snapshot,
    writes: tuple[Write, ...],
    setting: Setting | None,
    tensor: str | None,
) -> tuple[Fix, ...]:
    """The fixes of a call that needs a saved tensor which was modified in place.

    Parameters
    ----------
    writes
        The lines that modified it, in order; none: unknown.
    setting
        With an earlier call over the same nodes, kept by retain_graph.
    tensor
        Its name, None: unknown.
    """
    if writes and (writes[-1].optimizer or _is_leaf(graph, tensor)):
        order = _after_a_step(record, call, graph, writes, setting, tensor)
    else:
        order = _after_a_write(record, call, graph, writes[0] if writes else None, tensor)
    fixes = [fix for candidate in order if (fix := candidate()) is not None]
    if writes and writes[-1].optimizer and not any(fix.verified and fix.edits for fix in fixes):
        fixes.insert(0, _forward_after_step(call, writes[-1]))
    harmless = [fix for fix in fixes if not fix.starves]
    fixes = harmless if any(fix.verified for fix in harmless) else [*harmless, *(f for f in fixes if f.starves)]
    return tuple(fixes or [_in_words(tensor, leaf=_is_leaf(graph, tensor))])


def _in_words(tensor: str | None, *, leaf: bool = False) -> Fix:
    shown = f"`{tensor}`" if tensor else "it"
    if leaf:
        return Fix("zero_grad_or_step_order", f"Modify {shown} behind this call, which needs it as it was.")
    return Fix("clone_before_inplace", f"Modify a copy of {shown}, or write to a new tensor.", price=COPY)


def _forward_after_step(call: BackwardCall, write: Write) -> Fix:
    """Advice to run the forward pass after the step, for want of an edit that does it and helps."""
    root = root_name(call)
    behind = f"behind `{root}`" if root.isidentifier() else "of this call"
    line = f"{short(write.by)} ({where(write.place)})"
    sentence = f"Run the forward pass {behind} again after {line}, which has changed the weights that it has used."
    return Fix("recompute_in_loop", sentence, False, None, _ONCE_MORE)


def _is_leaf(graph: Snapshot, path: str | None) -> bool:
    return path is not None and any(path in map(local, leaf.paths) for leaf in graph.leaves.values())


def _after_a_step(
    record: Record,
    call: BackwardCall,
    graph: Snapshot,
    writes: tuple[Write, ...],
    setting: Setting | None,
    tensor: str | None,
) -> Iterator[Callable[[], Fix | None]]:
    """Move the step behind the call. If the call adds to the step's gradients, this changes the step and comes last."""
    write = writes[0]
    fresh = simulate(graph=with_nothing_stale(graph), call=call).ok is True
    other = setting if setting is not None and not setting.reuse.same_root else None
    mixes = adds_to_its_gradients(graph, call, write)
    again = _once_more(record, call, graph, write, setting, fresh)
    if other is not None and other.reuse.built_after:
        yield partial(detach.propose, Case(other))
    if mixes or (setting is not None and setting.reuse.same_root):
        yield again
    yield lambda: read_a_copy(record, call, graph, write, tensor)
    if not _in_next_pass(write, call):  # a step of an earlier pass has no later place
        yield lambda: step_later(record, call, graph, write, mixes)
    if other is not None and not other.reuse.built_after:
        yield partial(detach.propose, Case(other))
    if not mixes and other is not None:
        yield again


def _once_more(
    record: Record, call: BackwardCall, graph: Snapshot, write: Write, setting: Setting | None, fresh: bool
) -> Callable[[], Fix | None]:
    """Run the forward part again, after the step."""
    if setting is None:
        return lambda: _made_after(record, call, graph, fresh)
    if setting.reuse.same_root:
        return lambda: _forward_again(setting, write, fresh)
    return partial(recompute.propose, Case(setting))


def _made_after(record: Record, call: BackwardCall, graph: Snapshot, fresh: bool) -> Fix | None:
    """Run the forward pass after the step: the program has two passes, each with a step of its own."""
    before = [one for one in record.calls if one.n < call.n]
    setting = Setting(Reuse(record, call, before[-1], graph)) if before else None
    plan = (rerun(setting, everything=True) or rerun(setting)) if setting is not None else None
    return (
        Fix("recompute_in_loop", plan.sentence, fresh, plan.at, _ONCE_MORE, edits=plan.edits)
        if plan is not None
        else None
    )


def _in_next_pass(write: Write, call: BackwardCall) -> bool:
    """Whether the write follows the call in one loop, so that the next pass meets it.

    The lines are compared where the ways to both part: one line of the cell may call the function that has both.
    """
    a, b = write.place, call.place
    ways = zip((*map(at, a.stack), at(a)), (*map(at, b.stack), at(b)))
    one, other = next((pair for pair in ways if pair[0] != pair[1]), (at(a), at(b)))
    if one is None or other is None or one[0] != other[0]:
        one, other = outer_at(a) or (0, 0), outer_at(b) or (0, 0)
    return a.run is not None and a.run == b.run and one[1] >= other[1]


def _forward_again(setting: Setting, write: Write, fresh: bool) -> Fix | None:
    plan = rerun(setting, everything=True)
    sentence = f"Run the forward pass again after {short(write.by)}: it saves the new weights."
    place = plan.at if plan else at(setting.reuse.graph.place_of(setting.reuse.root_indices[0]))
    return Fix("recompute_in_loop", sentence, fresh, place, _ONCE_MORE, edits=plan.edits if plan else ())


def _after_a_write(
    record: Record, call: BackwardCall, graph: Snapshot, write: Write | None, tensor: str | None
) -> Iterator[Callable[[], Fix | None]]:
    if write is None:
        yield lambda: _in_words(tensor)
        return
    for remedy in _remedies(record, call, graph, write, tensor):
        yield partial(_with_the_rest, record, call, graph, remedy)


def _with_the_rest(record: Record, call: BackwardCall, graph: Snapshot, first: Remedy) -> Fix:
    """The fix that begins with a remedy. While another write makes the call fail, a remedy for that is added."""
    taken = [first]
    while True:
        works, other = works_without(record, call, graph, lambda found, made: _left(record, found, made, taken))
        more = _remedies(record, call, graph, other[1], other[0]) if other is not None else ()
        usable = next((r for r in sorted(more, key=lambda r: r.id != first.id) if r.edits), None)
        if usable is None or len(taken) == MOST_WRITES:
            break
        taken.append(usable)
    sentence = " ".join(dict.fromkeys(remedy.sentence for remedy in taken)) + another_write(other)
    place, edits = first.at, first.edits
    if len(taken) > 1:
        edits = tuple(dict.fromkeys(edit for remedy in taken for edit in remedy.edits)) if edits else ()
        place = _first_line(record, edits) or first.at
    return Fix(first.id, sentence, works, place, COPY, edits=edits)


def _first_line(record: Record, edits: Edits) -> Spot | None:
    """The first line that some edits change, in the order in which the cells ran."""
    order = list(Cells.of(record).texts)
    spots = [(order.index(edit.cell), edit.start[0]) for edit in edits if edit.cell in order]
    return (order[min(spots)[0]], min(spots)[1]) if spots else None


def _left(record: Record, found: tuple[Write, ...], made: Place | None, taken: list[Remedy]) -> list[Write]:
    """The writes that still modify what a node had saved, in order."""
    for remedy in taken:
        if read_as_a_copy(record, remedy, made):
            found = tuple(write for write in found if not set(write.storages) & set(remedy.write.storages))
    elsewhere: set[Scoped] = set()
    left: list[Write] = []
    for write in found:
        leading = (remedy for remedy in taken if remedy.leads_away and _writer(remedy.write) == _writer(write))
        names = {name for remedy in leading for name in remedy.names}
        tensors, modules = _names(record, write)
        away = tensors <= elsewhere if len(tensors) > 1 else elsewhere & (tensors | modules)
        if not names and not away:
            left.append(write)
        elsewhere |= names
    return left


def _writer(write: Write) -> tuple[object, ...]:
    """The line that writes, and the module in it that does: a line may run several modules."""
    return (*source_line(write.place), write.inside.path if write.inside is not None else "")


def _names(record: Record, write: Write) -> tuple[set[Scoped], set[Scoped]]:
    """The names through which a write modifies: its tensors with the scope of the name, and the modules it calls."""
    tree = source.parse(write.by)
    called: set[Scoped] = {("module", call) for call in (_heads(tree) if tree else ())}
    if write.inside is not None:
        called.add(("module", expression(write.inside)))
    cell, line = Cells.of(record).text(write.place.cell), write.place.line or 0
    return {scoped(cell, line, name) for name in modified(write, None)}, called


def _heads(tree: ast.AST) -> set[str]:
    return {name.split(".", 1)[0].split("[", 1)[0] for name in source.calls_in(tree)}


def _remedies(
    record: Record, call: BackwardCall, graph: Snapshot, write: Write, tensor: str | None
) -> Iterator[Remedy]:
    """The remedies for one write."""
    if write.optimizer:
        return
    cell, line = Cells.of(record).text(write.place.cell), write.place.line or 0
    written = modified(write, tensor)
    name = written[0] if len(written) == 1 else None
    hooked = in_hook(record, write, written) if write.inside is None else None
    if hooked is not None:
        yield hooked
        return
    computing = lines_computing(record, call, graph, write) if written and write.inside is None else frozenset()
    found = (handed_in(record, write, one, computing) for one in (written if write.inside is None else ()))
    handed = tuple(one for one in found if one is not None)
    own = {one.spot for one in handed}
    saved_inside = any(own & {*lines_of(graph.place_of(i))} for i in savers(call, graph, write))
    if handed and not all(one.used and (saved_inside or one.spot is None) for one in handed):
        inside = reading_where_saved(record, call, graph, write, written) if saved_inside else None
        yield inside or before_the_call(record, write, handed, saved_inside)
        return
    fixed = reading_field(record, call, graph, write, written) if write.inside is None else None
    if fixed is not None:
        yield fixed
        return
    for sentence, spot, edits in second_name(record, write, name):
        yield Remedy("clone_before_inplace", sentence, spot, edits, write, (scoped(cell, line, str(name)),))
    view = _view(cell, line, name, tensor)
    keeps = ""
    if view is not None and (write.place.cell, view.lineno) not in {at(w.place) for w in record.writes}:
        if not saved_behind(call, graph, write, view.lineno):
            made = short(source.line_text(cell, view.lineno))
            yield copied(write, cell, view.lineno, (str(tensor),), made, (str(name),))
            return
        keeps = f" Then `{tensor}` keeps its values."
    for remedy in _at_the_write(record, call, graph, write, written, tensor):
        yield replace(remedy, sentence=remedy.sentence + keeps)


def _at_the_write(
    record: Record, call: BackwardCall, graph: Snapshot, write: Write, written: tuple[str, ...], tensor: str | None
) -> Iterator[Remedy]:
    """Remedies in the line that writes, or that makes the writing module; `written`: what is modified there."""
    cell, line = Cells.of(record).text(write.place.cell), write.place.line or 0
    by = f"{short(write.by)} ({where(write.place)})"
    edits, spot, module, new = _rewritten(record, write)
    rewritten = bool(edits or new)
    if write.inside is not None and not rewritten:
        yield _no_longer_in_place(record, write, write.inside)
        if written and write.paths and not _saves_what_it_writes(record, call, graph, write)[0]:
            yield copied(write, cell, line, written, short(write.by), written)
        return
    sentence = f"Write {short(new)} instead of {by}." if new else f"Write to a new tensor instead of {by}."
    if spot is not None:
        sentence = f"Make it with `inplace=False` (In[{spot[0]}], line {spot[1]})."
    saved_there, saved_before = _saves_what_it_writes(record, call, graph, write)
    copying = inplace_statements.reading_copies(write.by, written) if saved_there and not rewritten else ""
    taken = None
    if saved_there and not rewritten and not copying and not saved_before:
        taken = taken_as_a_copy(record, write, written, tensor)
    if taken is not None:
        yield taken
    elif copying:
        yield reading(record, write, written, copying, by, saved_before)
    elif rewritten or saved_there:
        names = (("module", module),) if module else tuple(scoped(cell, line, name) for name in written or ("",))
        yield Remedy("out_of_place", sentence, spot or at(write.place), edits, write, names)
    if not saved_there and written:
        yield copied(write, cell, line, written, short(write.by), written)


def _no_longer_in_place(record: Record, write: Write, module: ModuleCall) -> Remedy:
    """Set the module's `inplace` to False before the line of the cell that calls it."""
    name, place, spot = expression(module), write.place, outer_at(write.place)
    if not name or spot is None:
        sentence = f"Make the `{module.class_name}` with `inplace=False`."
        return Remedy("out_of_place", sentence, at(place), (), write, (("module", name),))
    line = f"{name}.inplace = False"
    edits = text_edit.insert_before(spot[0], Cells.of(record).text(spot[0]), spot[1], [line])
    before = f"{short(place.outer_source or place.source)} (In[{spot[0]}], line {spot[1]})"
    sentence = f"Make `{name}` with `inplace=False`, or set `{line}` before {before}."
    return Remedy("out_of_place", sentence, spot, edits, write, (("module", name),))


def _view(cell: str, line: int, name: str | None, tensor: str | None) -> source.Statement | None:
    """The statement that made the view, or the second name, through which a line modifies `tensor`."""
    if name is None or tensor is None or name == tensor or not name.isidentifier():
        return None
    around = set(source.statements_at(cell, line))
    made = source.bindings(cell, name, line)
    view = made[-1] if made else None
    if view is None or tensor not in {ast.unparse(node) for node in ast.walk(source.given(view))}:
        return None
    return view if view in around or not hasattr(view, "body") else None


def _saves_what_it_writes(record: Record, call: BackwardCall, graph: Snapshot, write: Write) -> tuple[bool, bool]:
    """Whether a node of the writing line itself had saved what it writes, and whether a node of another line had.

    In ``state[t] = f(state[t - 1])`` a copy made before the line would be saved as well.
    """
    inside, nodes = reachable(graph, (root.node for root in call.roots)), savers(call, graph, write)
    hidden = {i for i in inside if graph.kind[i] == Kind.COPY_SLICES and blame.reads_its_target(graph, i)}
    if inplace_statements.is_operator_on_part(write.by):
        hidden = set()  # ``h[0] *= w`` puts back what it has read, and torch saves a copy of that
    begins = Cells.of(record).beginning
    written = begins(at(write.place))
    here = {i for i in nodes | hidden if written in map(begins, lines_of(graph.place_of(i)))}  # also in what it calls
    return bool(here) or inplace_statements.reads_what_it_writes(write.by), not nodes <= here


def _rewritten(record: Record, write: Write) -> tuple[Edits, Spot | None, str, str]:
    """The statement without its in-place part; for a module, the line that made it with `inplace=True`, and its name.

    Last the new text of the statement.
    """
    if write.inside is None:
        cell, line = Cells.of(record).text(write.place.cell), write.place.line or 0
        new = (
            inplace_statements.out_of_place(write.by, is_of_element(write, inplace_statements.modified(write.by) or ""))
            or temporaries.written_new(write.by)
            or inplace_statements.scattered(cell, line, write.by)
        )
        if new:
            return written_as(record, write, new), None, "", new
    tree = source.parse(write.by)
    called = _heads(tree) if tree else set()
    for run in record.runs.values():
        for name in called:
            for made in source.assignments(run.source, name):
                text = ast.unparse(made)
                if run.cell is not None and "inplace=True" in text and makes(text, write.inside):
                    edits = text_edit.replace_in(run.cell, run.source, made, "inplace=True", "inplace=False")
                    return edits, (run.cell, made.lineno), name, ""
    return (), None, "", ""
