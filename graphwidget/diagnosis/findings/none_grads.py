"""Missing gradients: a `.grad` that is None."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.fixes.unnamed_leaf import makes_a_leaf, with_these_values
from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.leaves import by_hand
from graphwidget.diagnosis.no_graph.leaves.by_hand import updated_in_place, updates_in_place
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, lasting_name, names, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, SlotState

__all__ = ["of_none", "of_reads"]


def of_none(failure: Failure) -> Finding | None:
    """``w - 0.1 * w.grad`` where `w.grad` was measured to be None. The error itself says only that something was."""
    without = failure.run.without_grad
    blamed = _blamed(failure)
    name = next((one for one in without if one in blamed), None)
    if name is None:
        return None
    if without[name] == "computed":
        return _of_no_leaf(failure, name, failure.computed(name))
    ran = [call for call in failure.record.calls if call.result == "ok" and call.api == "backward"]
    if without[name] == "plain":
        return _of_plain(failure, name)
    if (made := _made_anew(failure, name)) is not None:
        text = f"{short(made.source)} ({where(made)}) made a new leaf, which no backward has reached yet."
        fix = _not_cleared(failure) or failure.fix("zero_grad_or_step_order", "Read it before that line.")
    elif any(_reached(call, name) for call in ran):
        text = f"A backward wrote to it. `zero_grad()` has set it to None since, or `{name}` is a new tensor."
        fix = failure.fix("zero_grad_or_step_order", "Read it after backward, and before `zero_grad()`.")
    elif not ran:
        text = "No backward is known to have run."
        fix = _cleared_only_if_there(failure) or failure.fix(
            "run_backward", f"Run backward first, on something computed from `{name}`."
        )
    else:
        text = "No backward has written to it: none that ran is known to have reached it."
        fix = failure.fix("run_backward", f"See that the loss is computed from `{name}`, and that nothing cuts it off.")
    return failure.finding(f"`{name}.grad` is None.", text, fix, kind="no_grad", tensor=name)


def _cleared_only_if_there(failure: Failure) -> Fix | None:
    """``w.grad.zero_()`` before the first backward, one line for each leaf: clear what is there.

    None where no graph is known to lead to a leaf: then a condition would hide that it never gets a gradient.
    """
    first = failure.statement
    if first is None or not failure.before_a_backward:
        return None
    edits: text_edit.Edits = ()
    cleared: tuple[str, ...] = ()
    for one in source.block_of(failure.cell, first):
        if one.lineno < first.lineno:
            continue
        name, line = _cleared(one), source.statement_of(failure.cell.splitlines()[one.lineno - 1])
        if name is None or line is None or ast.unparse(line) != ast.unparse(one) or not _leads_to(failure, name):
            break
        cleared = (*cleared, f"{name}.grad")
        guarded = [f"if {name}.grad is not None:", f"    {ast.unparse(one)}"]
        edits = (*edits, *text_edit.replace_lines(failure.place.cell, failure.cell, one.lineno, one.lineno, guarded))
    why = "The first backward comes after this line: there is nothing to clear yet."
    return failure.fix("clear_if_there", f"{why} Clear {names(cleared)} only if not None.", edits) if edits else None


def _not_cleared(failure: Failure) -> Fix | None:
    """``w.grad.zero_()`` behind the line that makes a new leaf in each pass: that one has nothing to clear."""
    first = failure.statement
    block = source.block_of(failure.cell, first) if first is not None and _cleared(first) else []
    lines = [
        one
        for one in block
        if first is not None and one.lineno >= first.lineno and (name := _cleared(one)) and _made_anew(failure, name)
    ]
    edits = tuple(edit for one in lines for edit in text_edit.remove(failure.place.cell, failure.cell, one))
    shown = names(tuple(ast.unparse(one) for one in lines))
    sentence = f"Leave out {shown}: a new leaf has no gradient to clear."
    return failure.fix("clear_if_there", sentence, edits) if edits else None


def _made_anew(failure: Failure, name: str) -> Place | None:
    """The line before the failed one, in its cell, that made a new leaf: ``w = (w - g).detach().requires_grad_()``."""
    values, spot = _seen_from(failure)
    there, made = next(iter(values.made(name, spot)), (spot, None))
    run = values.runs[there.at] if 0 <= there.at < len(values.runs) else None
    if run is None or there.at != spot.at or not isinstance(made, ast.Assign) or made.lineno >= spot.line:
        return None
    itself = name in source.names_in(made.value)
    return place_of(run, made.lineno) if itself and makes_a_leaf(made.value) else None


def _seen_from(failure: Failure) -> tuple[Values, Spot]:
    """What binds names, and where the failed line stands in it."""
    runs = [run for _, run in sorted(failure.record.runs.items())]
    at_cell = [index for index, run in enumerate(runs) if run.cell == failure.place.cell]
    return Values(runs), Spot(at_cell[-1] if at_cell else -1, failure.place.line or 1)


def _cleared(statement: ast.stmt) -> str | None:
    """``w`` of ``w.grad.zero_()`` and ``w.grad.data.zero_()``, if that is all that a statement does."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    found = (
        re.fullmatch(r"([\w.]+)\.grad(?:\.data)?\.(?:zero_|fill_)\(0?(?:\.0)?\)", ast.unparse(call)) if call else None
    )
    return found[1] if found is not None else None


def _leads_to(failure: Failure, name: str) -> bool:
    """Whether something that is there was computed from a leaf."""
    graph = failure.record.snapshot
    nodes = {node for node, leaf in graph.leaves.items() if name in map(local, leaf.paths)}
    return any(not nodes.isdisjoint(graph.next(index)) for index in range(len(graph)))


def _of_plain(failure: Failure, name: str) -> Finding:
    """The finding for a tensor that does not require grad. If it is frozen on purpose, its `.grad` must not be read."""
    if (cause := _replaced(failure, name)) is not None:
        text = f"{cause.text} So `{name}` is no longer the leaf that backward writes to."
        return failure.finding(
            f"`{name}.grad` is None.", text, cause.fix, kind="no_grad", tensor=name, cause=cause.place
        )
    let = failure.fix(
        "unfreeze", f"If `{name}` is meant to get one, let it require grad before the loss is computed from it."
    )
    skip = failure.fix("skip_none", f"Skip what is frozen: read it only where `{name}.grad is not None`.")
    passing = name.split(".", 1)[0].split("[", 1)[0] in source.loop_names(failure.cell)
    return failure.finding(
        f"`{name}.grad` is None.",
        f"`{name}` does not require grad, so no backward writes to its `.grad`.",
        *((skip, let) if passing else (let, skip)),
        kind="no_grad",
        tensor=name,
    )


def _replaced(failure: Failure, name: str) -> Cause | None:
    """The line of a step by hand that replaced a leaf by what it computed: ``w = w - 0.1 * w.grad`` under `no_grad`."""
    values, spot = _seen_from(failure)
    for there, made in values.made(name, spot) if _was_a_leaf(failure, name) else ():
        if isinstance(made, ast.Assign):
            switch = values.switch_around(there.at, made)
            how = f"ran under `{switch.text}`" if switch is not None else "cuts off what it reads"
            cause = by_hand.replaced(failure.record, values.runs[there.at], made, how, sure=True)
            if cause is not None:
                return cause
    return None


def _was_a_leaf(failure: Failure, name: str) -> bool:
    """Whether a program says that a tensor was to be trained: another line uses its `.grad`, or makes a leaf of it."""
    nodes = [node for text in failure.cells.texts.values() for node in source.nodes_of(text)]
    used = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "grad")
    lines = {node.lineno for node in used if ast.unparse(node.value) == name}
    given = (source.given(node) for node in nodes if isinstance(node, ast.Assign) and name in source.targets(node))
    return bool(lines - {failure.place.line}) or any(makes_a_leaf(node) for one in given for node in ast.walk(one))


def _blamed(failure: Failure) -> set[str]:
    """Tensors whose `.grad` the line reads where the error reports a None: `w` for ``w.grad.norm()`` and 'norm'."""
    error = failure.run.error or ""
    attribute = re.search(r"'NoneType' object has no attribute '(\w+)'", error)
    found = set[str]()
    for node in ast.walk(failure.statement) if failure.statement is not None else ():
        if attribute is not None:
            parts = [node.value] if isinstance(node, ast.Attribute) and node.attr == attribute[1] else []
        elif "operand" in error:
            parts = _operands(node)
        elif "subscriptable" in error or "item" in error:
            parts = [node.value] if isinstance(node, ast.Subscript) else []
        else:
            parts = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
            parts += [node.iter] if isinstance(node, (ast.For, ast.comprehension)) else []
        grads = [one for one in parts if isinstance(one, ast.Attribute) and one.attr == "grad"]
        found.update(ast.unparse(one.value) for one in grads)
    return found


def _operands(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    return [node.target, node.value] if isinstance(node, ast.AugAssign) else []


def _reached(call: BackwardCall, name: str) -> bool:
    """Whether a call ran the node that adds to the `.grad` of a leaf with this name."""
    graph = call.graph
    if graph is None:
        return False
    nodes = [index for index, leaf in graph.leaves.items() if name in leaf.paths]
    return any(graph.uid[index] in call.executed for index in nodes)


def _asks_to_retain(text: str) -> bool:
    tree = source.parse(text)
    if tree is None:
        return True
    return any(isinstance(node, ast.Attribute) and node.attr == "retain_grad" for node in ast.walk(tree))


def _grads_read(statement: ast.stmt) -> list[str]:
    """Tensors whose `.grad` a statement reads: `w` in ``w - w.grad``, none in ``torch.autograd.grad(y, x)``."""
    read = [n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr == "grad"]
    found = [ast.unparse(node.value) for node in read if isinstance(node.ctx, ast.Load)]
    return [name for name in dict.fromkeys(found) if source.last_name(name) != "autograd"]


def _of_no_leaf(failure: Failure, name: str, node: int | None) -> Finding:
    graph = failure.record.snapshot
    lasting = _lasting(failure, name, node)
    shown = f"`{name}`" if lasting == name else f"`{lasting}` (`{name}` in the line)"
    place = graph.place_of(node) if node is not None else None
    spot = at(place)
    text = failure.cells.text(spot[0]) if spot is not None else ""
    made_by = failure.cells.statement(spot) if spot is not None else None
    meant: Fix | None = None
    if spot is not None and made_by is not None and updated_in_place(text, made_by):
        # It was a leaf until then. The fix is sure where nothing needs the leaf's values any more.
        before = "in the pass before" if spot == at(failure.place) else f"in {where(place)}"
        how = f"{short(ast.unparse(made_by))} made a new tensor {before}: it is no leaf."
        edits = updates_in_place(spot[0], text, made_by)
        fix = Fix(
            "under_no_grad",
            "Change the leaf in place, and record nothing.",
            SlotState.HELD not in graph.slot_state and bool(edits),
            spot,
            "`.grad` adds up from call to call: set it to None after use.",
            edits=edits,
        )
    elif node is None or _ran(failure.record, graph.uid[node]):
        how = f"{shown} was computed{failure.made(node)}: it is no leaf."
        retained = _retained(name, node, spot, text, made_by)
        fix = retained if retained.edits else _retained_at_the_call(failure, name) or retained
        meant = _meant_as_leaf(spot, text, made_by) if not failure.leaves(name) else None
    else:
        how = f"{shown} was computed{failure.made(node)}: it is no leaf. No backward has reached it since."
        sentence = f"Ask for it by `{name}.retain_grad()`, and run a backward that reaches it before you read it."
        fix = Fix("retain_grad", sentence, False, spot)
    text = f"{how} Backward writes `.grad` into leaves only."
    fixes = (fix,) if meant is None else (meant, fix)
    cause = place if spot is not None else None
    return failure.finding(f"`{lasting}.grad` is None.", text, *fixes, kind="no_grad", tensor=name, cause=cause)


def _lasting(failure: Failure, name: str, node: int | None) -> str:
    """The name that a tensor keeps, where that of the line passes from one to the next."""
    paths = tuple(owner.path for owner in failure.record.snapshot.owners if owner.node == node)
    return lasting_name(failure.record, paths) if node is not None and paths else name


def _retained(name: str, node: int | None, spot: tuple[int, int] | None, text: str, made_by: ast.stmt | None) -> Fix:
    """Ask for the `.grad` behind the line that made the tensor, if that is its name there."""
    cell, line = spot or (None, 0)
    named = made_by is not None and name in source.targets(made_by)
    keep = text_edit.insert_after(cell, text, line, [f"{name}.retain_grad()"]) if named else ()
    sentence = f"Ask for it before backward: `{name}.retain_grad()`."
    return Fix("retain_grad", sentence, node is not None and bool(keep), spot, edits=keep)


def _retained_at_the_call(failure: Failure, name: str) -> Fix | None:
    """Ask for the `.grad` where it is read by another name than it was made by: before the call in the same block.

    Sure where that call was seen to run the tensor's node, and the name means the same tensor from there on.
    """
    ran = [call for call in failure.record.calls if call.result == "ok" and _runs_through(call, name)]
    read = failure.statement
    if read is None or not ran or ran[-1].place.cell != failure.place.cell or ran[-1].place.run != failure.place.run:
        return None
    between = [one for one in source.block_of(failure.cell, read) if one.lineno < read.lineno]
    line = ran[-1].place.line or 0
    between = [one for one in between if line <= (one.end_lineno or one.lineno)]
    if not between or between[0].lineno > line or hasattr(between[0], "body"):
        return None
    if any(name in source.targets(one) or name in _stored(one) for one in between):
        return None
    edits = text_edit.insert_before(failure.place.cell, failure.cell, between[0], [f"{name}.retain_grad()"])
    sentence = f"Ask for it before backward: `{name}.retain_grad()`."
    return Fix("retain_grad", sentence, bool(edits), at(ran[-1].place), edits=edits)


def _runs_through(call: BackwardCall, name: str) -> bool:
    """Whether a call ran the node that computed the tensor which then had this name where it was called."""
    graph = call.graph
    owners = () if graph is None else graph.owners
    nodes = [owner.node for owner in owners if local(owner.path) == name]
    return graph is not None and any(graph.uid[one] in call.executed and one not in graph.leaves for one in nodes)


def _stored(statement: ast.stmt) -> set[str]:
    """What a statement, or one in it, gives a new value."""
    found = (n for n in ast.walk(statement) if isinstance(n, (ast.Name, ast.Attribute)))
    return {ast.unparse(node) for node in found if not isinstance(node.ctx, ast.Load)}


def _meant_as_leaf(spot: tuple[int, int] | None, text: str, made_by: ast.stmt | None) -> Fix | None:
    """``torch.randn(3, requires_grad=True) * 0.1``, or ``.to(device)``: the leaf itself has no name."""
    if spot is None or made_by is None or "requires_grad=True" not in ast.unparse(made_by):
        return None  # ``x.clone().requires_grad_() * 2`` may be about `x`
    if (made := with_these_values(spot[0], text, made_by)) is None:
        return None
    new, edits = made
    return Fix("leaf", f"Let what is computed be the leaf: {short(new)}.", False, spot, edits=edits)


def _ran(record: Record, uid: int) -> bool:
    """Whether a call that succeeded has run a node."""
    return any(uid in call.executed for call in record.calls if call.result == "ok")


def of_reads(record: Record) -> Iterator[Finding]:
    """``print(y.grad)`` where `y` is no leaf: it raises nothing, and is None.

    Only lines count that run once, after the line that made the variable. A program that calls `retain_grad` anywhere
    has no such finding.

    """
    if any("retain_grad" in run.source and _asks_to_retain(run.source) for run in record.runs.values()):
        return
    runs = [run for run in Cells.of(record).latest if run.error is None and ".grad" in run.source]
    read = {
        name: (run, statement)
        for run in runs
        for statement in getattr(source.parse(run.source), "body", ())
        if not hasattr(statement, "body")
        for name in _grads_read(statement)
    }
    graph = record.snapshot
    for owner in graph.owners if read else ():
        run, statement = read.pop(owner.path, (None, None))
        place = graph.place_of(owner.node) if owner.node not in graph.leaves else None
        if run is None or statement is None or place is None or place.run is None or place.outer_line is None:
            continue
        if (place.run, place.outer_line) < (run.run, statement.lineno):
            failure = Failure(record, run, place_of(run, statement.lineno))
            yield replace(_of_no_leaf(failure, owner.path, owner.node), kind="silent", severity="info")
