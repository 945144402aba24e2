"""An input that a call of `torch.autograd.grad` did not use: which one, and why no path leads to it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.findings.refusals.makers import line_that_made
from graphwidget.diagnosis.findings.refusals.unused_inputs.adapted import adapted
from graphwidget.diagnosis.findings.refusals.unused_inputs.below import below, node_then
from graphwidget.diagnosis.findings.refusals.unused_inputs.cut_off import cut_ahead, cut_off, uncut
from graphwidget.diagnosis.findings.refusals.unused_inputs.inside import in_checkpoint, in_own_function
from graphwidget.diagnosis.findings.refusals.unused_inputs.kept import kept_from_before
from graphwidget.diagnosis.findings.refusals.unused_inputs.late import told_late
from graphwidget.diagnosis.findings.refusals.unused_inputs.linear import linear_in
from graphwidget.diagnosis.findings.refusals.unused_inputs.made_again import made_again
from graphwidget.diagnosis.findings.refusals.unused_inputs.parts import part_of_whole
from graphwidget.diagnosis.findings.refusals.unused_inputs.second_names import second_name
from graphwidget.diagnosis.findings.refusals.unused_inputs.unread import unread_argument
from graphwidget.diagnosis.no_graph.cause import expression
from graphwidget.diagnosis.no_graph.cutting import cuts_in
from graphwidget.diagnosis.no_graph.origins import Cut, Origins
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.no_graph.way_forward import why_cut
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.diagnosis.wording import at, lasting_name, names, own_path, place_of, root_name, short, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, Scene, TensorRef, Write

__all__ = ["explain"]


_ZERO = "materialize_grads=True"


class _Why(NamedTuple):
    """Why no path leads to an input: a sentence, the line, and a fix."""

    text: str
    place: Place | None
    fixes: tuple[Fix, ...]


def explain(record: Record, call: BackwardCall) -> Finding:
    """``torch.autograd.grad(loss, [w, b])`` where `loss` was not computed from `b`."""
    number = re.search(r"at index (\d+)", call.error or "")
    index = int(number[1]) if number is not None else -1
    given = call.inputs or ()
    name = _name(call, index)
    root, shown = root_name(call), f"`{name}`" if name else "an input"
    start = call.roots[0] if len(call.roots) == 1 else None
    other = adapted(record, call, root)
    kept = second_name(record, call, root)
    if kept is not None:
        return _finding(call, root, name or (other.name if other is not None else None), _Why(*kept))
    if other is not None:
        name = name or other.name
        return _finding(call, root, name, _Why(other.text, other.place, other.fixes))
    asked = given[index] if 0 <= index < len(given) else None
    why = (
        _leaf_root(record, call, start, root, shown, name)
        or _as_why(kept_from_before(record, call, asked, root, shown))
        or _stepped(record, call, asked, root, shown)
        or _as_why(in_own_function(record, call, index, root, shown))
        or _cut_there(record, call, index, root, name, shown)
        or _as_why(made_again(call, asked, root, shown))
        or _as_why(told_late(record, call, index, root, shown))
        or _as_why(linear_in(record, call, asked, root, shown))
        or _as_why(cut_ahead(record, call, asked, root, shown))
        or _as_why(in_checkpoint(record, call, index, root, shown))
        or _as_why(part_of_whole(record, call, asked, name, root, shown))
        or _not_read(record, call, root, name, shown)
        or _left_out(record, call, root, name, shown)
    )
    instead = "" if start is not None and start.is_leaf else _reached_instead(record, call, root)
    return _finding(call, root, name, why._replace(text=f"{why.text}{instead}"))


def _finding(call: BackwardCall, root: str, name: str | None, why: _Why) -> Finding:
    return Finding(
        "refused",
        "error",
        why.text,
        f"{f'`{name}`' if name else 'An input'} is not part of the graph of `{root}`.",
        call.n,
        tensor=name,
        made_at=why.place,
        fixes=why.fixes,
    )


def _name(call: BackwardCall, index: int) -> str | None:
    """An input as the call writes it; an element of ``net.parameters()``, or a helper's argument, by its path."""
    given, written = call.inputs or (), source.asked(call.place.source, "inputs")
    if not 0 <= index < len(given):
        return None
    path = own_path(given[index])
    if len(written) != len(given):
        return spoken(path) if path else None
    argument = path is not None and ":" not in path and written[index].isidentifier() and path.isidentifier()
    return path if argument else written[index]


def _reached_instead(record: Record, call: BackwardCall, root: str) -> str:
    """A sentence about the leaves that the graph does lead to."""
    graph = call.graph
    leaves = [graph.leaves[index] for index in sorted(below(graph, call)) if index in graph.leaves] if graph else []
    named = sorted({lasting_name(record, leaf.paths) for leaf in leaves if leaf.paths})
    return f" The graph of `{root}` leads to {names(tuple(named))} instead." if named else ""


# ------------------------------------------------------------------ the reason


def _as_why(found: tuple[str, Place | None, tuple[Fix, ...]] | None) -> _Why | None:
    return _Why(*found) if found is not None else None


def _leaf_root(
    record: Record, call: BackwardCall, start: TensorRef | None, root: str, shown: str, name: str | None
) -> _Why | None:
    """The root is a leaf: it was computed without a graph, and then told to require grad."""
    if start is None or not start.is_leaf:
        return None
    known = own_path(start)
    path = local(known) if known is not None else None
    made = _made(record, path)
    line = f" ({where(made)})" if made is not None else ""
    text = f"`{root}` is itself a leaf{line}. It has no record of how it was computed."
    cut = _cut(record, call, path, name, shown) if path is not None else None
    if cut is not None:
        return cut._replace(text=f"{text} {cut.text}")
    return _Why(f"{text} So no path leads to {shown}.", made, (_use(root, name),))


def _made(record: Record, name: str | None) -> Place | None:
    """Where a variable was last given a value."""
    found = (
        (run, source.assignments(run.source, name)) for _, run in sorted(record.runs.items(), reverse=True) if name
    )
    return next((place_of(run, made[-1].lineno) for run, made in found if made), None)


def _stepped(record: Record, call: BackwardCall, asked: TensorRef | None, root: str, shown: str) -> _Why | None:
    """A step or another write lies between: the root was computed from values that were written into leaves.

    That is so where an earlier call led from the input's graph to the leaves, and a later write has modified them.
    """
    graph = call.graph
    if graph is None or asked is None:
        return None
    reached = below(graph, call)
    leaves = {graph.uid[index] for index in reached if index in graph.leaves}
    paths = {path for index in reached if index in graph.leaves for path in graph.leaves[index].paths}
    for earlier in reversed(record.calls):
        if earlier.n >= call.n or earlier.result != "ok" or earlier.graph is None:
            continue
        used = node_then(record, earlier, call, asked)
        if used is None or used not in below(earlier.graph, earlier) or not leaves & set(earlier.reached_uids):
            continue
        write = _write_between(record, earlier, call, paths)
        if write is None:
            continue
        line = f"{short(write.by)} ({where(write.place)})"
        text = (
            f"{line} has written new values into what `{root}` is computed from. A write like that is not recorded: "
            f"that the values depend on {shown} is not part of the graph."
        )
        fix = Fix(
            "differentiable_op",
            f"Compute the new values with a graph in place of {short(write.by)}: `p - lr * g`, with `g` from "
            "`torch.autograd.grad(..., create_graph=True)`, and use them by `torch.func.functional_call`.",
            False,
            at(write.place),
        )
        return _Why(text, write.place, (fix,))
    return None


def _write_between(record: Record, earlier: BackwardCall, call: BackwardCall, paths: set[str]) -> Write | None:
    """The last write between two calls to leaves of these paths."""
    between = [one for one in record.writes if earlier.n < one.after_calls <= call.n]
    found = [one for one in between if paths & set(one.paths) or (one.optimizer and not any(one.paths))]
    return found[-1] if found else None


def _cut_there(record: Record, call: BackwardCall, index: int, root: str, name: str | None, shown: str) -> _Why | None:
    """The line that cuts off the input, as the text shows it where the measurement does not name another one.

    Where it was measured that no line cuts that input off, the text means another tensor of that name.
    """
    written, measured = _cut(record, call, root, name, shown), _as_why(cut_off(record, call, index, root, shown))
    if measured is None and record.lineage is not None and record.lineage.call == call.n:
        return None
    if written is not None and (measured is None or at(written.place) == at(measured.place)):
        return written
    return measured


def _cut(record: Record, call: BackwardCall, root: str, name: str | None, shown: str) -> _Why | None:
    """A line on the way back from the root that cuts off the input."""
    if name is None:
        return None
    runs = [run for _, run in sorted(record.runs.items()) if call.place.run is None or run.run <= call.place.run]
    origins = Origins(Values(runs, dict(runs[-1].modules) if runs else {}, record.scenes.get(call.n, Scene())))
    spot = origins.values.spot_of(call)
    wanted = {name, name.rsplit(".", 1)[-1] if "." in name else name}
    found = [one for one in origins.cuts(expression(root), spot) if _goes_back(origins, one, wanted)]
    found = [one for one in found if not _makes_the_input(call, one, wanted)]
    if len({(one.run.run, one.statement.lineno) for one in found}) != 1:
        return None
    cut = found[0]
    place = place_of(cut.run, cut.statement.lineno)
    how = f"under `{cut.by}`" if cut.around is not None else f"and {why_cut(cut.by)}"
    text = (
        f"No path leads from `{root}` to {shown}. {short(ast.unparse(cut.statement))} ({where(place)}) computes a "
        f"part of it from {shown}, {how}."
    )
    return _Why(text, place, (uncut(cut, place),))


def _makes_the_input(call: BackwardCall, cut: Cut, wanted: set[str]) -> bool:
    """Whether the line that cuts gives the input its value, in the function that asks: ``x = (x + step).detach()``.

    What is computed from that is computed from the input.
    """
    there = source.function_at(cut.run.source, cut.statement.lineno)
    name = there[1].name if there is not None else ""
    asking = (call.place.function or "").rpartition(".")[2]
    return name == asking and bool(wanted & set(source.targets(cut.statement)))


def _goes_back(origins: Origins, cut: Cut, wanted: set[str]) -> bool:
    """Whether the value that a line cuts off was computed from one of some names."""
    at_run = next((i for i, run in enumerate(origins.values.runs) if run is cut.run), -1)
    value = source.given(cut.statement)
    parts = [value] if cut.around is not None else [one for _, inner in cuts_in(value) for one in inner]
    nodes = [node for part in parts for node in ast.walk(part)]
    read = {ast.unparse(node) for node in nodes if isinstance(node, (ast.Name, ast.Attribute))}
    if read & wanted:
        return True
    spot = Spot(at_run, cut.statement.lineno)
    for _, node, _ in origins.back(ast.Tuple([expression(one) for one in sorted(read) if one.isidentifier()]), spot):
        inner = source.given(node) if isinstance(node, ast.stmt) else node
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if source.names_in(inner) & wanted:
            return True
    return False


def _is_trained(record: Record, call: BackwardCall, name: str | None) -> bool:
    """Whether an optimizer holds an input that the program made one by one: then a gradient of None is no answer.

    A part of a module, which is asked for with all the others, may be left out of a loss on purpose.
    """
    made = line_that_made(record, name) if name else None
    if made is None or "requires_grad" not in made.source:
        return False
    paths = [path for ref in call.inputs or () if name and name in map(spoken, ref.paths) for path in ref.paths]
    return any(".param_groups[" in path for path in paths)


def _not_read(record: Record, call: BackwardCall, root: str, name: str | None, shown: str) -> _Why | None:
    """A function is given the input, and never reads it."""
    written = source.asked(call.place.source, "inputs")
    variable = name if name is not None and name.isidentifier() else written[0] if len(written) == 1 else ""
    unread = unread_argument(record, call.place, variable) if variable.isidentifier() else None
    if unread is None:
        return None
    text = f"No path leads from `{root}` to {shown}: {unread.sentence}"
    advice = f"Let `{unread.function.name}` compute with its argument `{unread.argument}` ({where(unread.place)})."
    return _Why(text, unread.place, (Fix("use_input", advice, False, at(unread.place)),))


def _left_out(record: Record, call: BackwardCall, root: str, name: str | None, shown: str) -> _Why:
    """No line is known that cuts the input off: it was not used."""
    made = line_that_made(record, name) if name and _is_in_module(name) else None
    where_made = f" It is made in {where(made)}." if made is not None else ""
    text = (
        f"No path leads from `{root}` to {shown}. It was not computed from that, or a line between them cut the graph."
        f"{where_made}"
    )
    return _Why(text, made, _for_unused(record, call, root, name))


def _is_in_module(name: str) -> bool:
    return "." in local(name) and not local(name).endswith(".grad")


# ------------------------------------------------------------------ fixes


def _use(root: str, name: str | None) -> Fix:
    which = f"`{name}`" if name else "it"
    return Fix("use_input", f"See that `{root}` is computed from {which} itself, and that nothing cuts it off.", False)


def _for_unused(record: Record, call: BackwardCall, root: str, name: str | None) -> tuple[Fix, ...]:
    """`allow_unused` helps only if the call reaches another of its inputs: else all gradients are None.

    Where the program computes with the gradients, a None would raise the next error; `materialize_grads` gives zeros.
    """
    use = _use(root, name)
    if not _reaches_another(call):
        return (use,)
    if _is_trained(record, call, name):
        text = f"{use.text} An optimizer holds it: with `allow_unused=True` it would never be trained."
        return (replace(use, text=text),)
    spot, cells = at(call.place), Cells.of(record)
    statement = cells.statement(spot) if spot is not None else None
    text = cells.text(spot[0]) if spot is not None else ""
    zeros = statement is not None and _computes_with(text, statement)
    keyword = _ZERO if zeros else "allow_unused=True"
    edits: text_edit.Edits = ()
    if spot is not None and statement is not None:
        edits = text_edit.with_keyword(spot[0], text, statement, keyword)
    gives = "Its gradient is then zero." if zeros else "Its gradient is then None."
    fix = Fix("allow_unused", f"If that is meant, pass `{keyword}`. {gives}", False, spot, edits=edits)
    return (fix, use)


def _computes_with(text: str, statement: ast.stmt) -> bool:
    """Whether the program computes with the result of a statement without a test whether it is None."""
    inside = source.function_at(text, statement.lineno)
    tree = source.parse(text)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    given = {root_of(name) for name in source.targets(statement)}
    later = [one for one in source.own_statements(body) if one.lineno > statement.lineno]
    reading = [one for one in later if given & source.names_read(one)]
    asks = any(_is_none(node) for one in (statement, *later) for node in ast.walk(one))
    shown = all(isinstance(one, ast.Expr) and ast.unparse(one).startswith("print(") for one in reading)
    nested = not isinstance(getattr(statement, "value", None), (ast.Call, ast.Subscript)) or any(
        isinstance(node, (ast.BinOp, ast.comprehension)) for node in ast.walk(statement)
    )
    return not asks and (nested or not shown)


def _is_none(node: ast.AST) -> bool:
    """Whether a node compares something with None."""
    return isinstance(node, ast.Compare) and any(
        isinstance(one, ast.Constant) and one.value is None for one in node.comparators
    )


def _reaches_another(call: BackwardCall) -> bool:
    """Whether a path leads from the roots of a call to one of its inputs."""
    graph = call.graph
    wanted = {ref.node for ref in call.inputs or () if ref.node >= 0}
    return graph is not None and bool(wanted & below(graph, call))
