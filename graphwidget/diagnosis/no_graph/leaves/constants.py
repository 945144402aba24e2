"""Roots that are made of constants: no line cut a graph, as there was none in the pass that failed.

``loss = torch.zeros(1)`` stays what it is where a mask is empty, or a branch returns it. Measured are the lines that
made what lies behind the root; no other line is to blame then, whatever the text suggests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphwidget.diagnosis.no_graph.cause import Cause, expression
from graphwidget.diagnosis.no_graph.cutting import CUTTING
from graphwidget.diagnosis.no_graph.measured import statement_of, statements
from graphwidget.diagnosis.no_graph.origins import Origins
from graphwidget.diagnosis.no_graph.values import Spot
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, names, place_of, short, source_line, where
from graphwidget.model import BackwardCall, CellRun, Fix, MeasuredConstant, Place, Record, Scene, TextEdit, TextLine

__all__ = ["in_a_branch", "is_before_all_passes", "made_of_constants", "passed_before"]

_MADE = ("zero", "constant")
_SEEN = (*_MADE, "data")
_MOST_TOLD = 3
_FINDING = "find_the_cut"
_LETTING = "unfreeze"


def made_of_constants(record: Record, call: BackwardCall, root: str, found: Cause) -> list[Cause] | None:
    """The causes that the root is made of constants, where that is measured; None: it is not, or another is likelier.

    Parameters
    ----------
    root
        Its name.
    found
        The cause that the text suggests.
    """
    lineage = record.lineage
    if lineage is None or lineage.call != call.n or lineage.behind_root or lineage.frozen or not lineage.constants:
        return None
    behind = lineage.constants
    seen = all(one.kind in _SEEN for one in behind)
    if not seen and (found.fix.id != _FINDING or any(one.kind == "frozen" for one in behind)):
        return None  # what was not seen may have been cut
    made = _to_blame(behind)
    if not made and any(one.kind == "unseen" for one in behind):
        return None
    if (
        found.fix.id == _LETTING
        and not passed_before(record, call)
        and not any(names for one in made for names in one.beside)
    ):
        return None  # a leaf of the program's own, that was to require grad
    lines = [(one, *there) for one in made or behind if (there := next(statements(record, one.lines), None))]
    if not lines:
        return None
    return _causes(record, call, root, lines, seen, alone=all(one in made or not one.latest for one in behind))


def in_a_branch(record: Record, call: BackwardCall, root: str, origins: Origins, spot: Spot) -> Cause | None:
    """The cause that the text shows: a branch makes the root new, where earlier calls of the line had a graph."""
    if not passed_before(record, call) or any(cut.sure for cut in origins.cuts(expression(root), spot)):
        return None
    for there, node, _ in origins.back(expression(root), spot):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg)) or not 0 <= there.at < len(origins.values.runs):
            continue
        run = origins.values.runs[there.at]
        statement = node if isinstance(node, ast.stmt) else origins.values.statement_of(there, node)
        others = _in_other_branches(run, statement) if isinstance(node, ast.Assign) else []
        for one in (node, *others):
            value = syntax.given(one) if isinstance(one, ast.stmt) else one
            own = statement if one is node else one
            if isinstance(own, ast.stmt) and any(map(_is_new, _handed_on(value))) and _is_one_way(run, own):
                return _if_nothing_else(place_of(run, own.lineno), root)
    return None


def is_before_all_passes(record: Record, call: BackwardCall, found: Cause) -> bool:
    """Whether the line of a cause ran once before passes that had a graph: then it did not leave this one without."""
    there = statement_of(record, found.place)
    if there is None or found.fix.id not in CUTTING.values():
        return False
    run, statement = there
    once = (
        syntax.function_at(run.source, statement.lineno) is None
        and syntax.loop_at(run.source, statement.lineno) is None
    )
    earlier = (one for one in record.calls if one.result == "ok" and source_line(one.place) == source_line(call.place))
    return once and any(one.place.run == call.place.run for one in earlier)


def _if_nothing_else(place: Place, root: str) -> Cause:
    text = (
        f"{short(place.source)} ({where(place)}) makes a new tensor without a graph. Earlier passes had a graph: if "
        f"nothing else got into `{root}` in this one, it has none."
    )
    words = (
        f"If so, make it of what the model returned in this pass ({where(place)}): `out.sum() * 0` is zero, and has a "
        f"graph. Or leave the call out in such a pass: `if {root}.requires_grad:`."
    )
    return Cause(text, Fix("keep_a_graph", words, False, at(place)), place)


def _is_one_way(run: CellRun, statement: ast.stmt) -> bool:
    """Whether passes may differ in what comes of a statement: by a branch, or by what is added to it."""
    branch = _branch(run, statement) is not None
    return branch or _is_added_to(run, statement) or _is_returned_early(run, statement)


def _in_other_branches(run: CellRun, statement: ast.stmt | None) -> list[ast.stmt]:
    """What other branches around an assignment assign to the same target."""
    if not isinstance(statement, ast.Assign):
        return []
    around = [one for one in syntax.statements_at(run.source, statement.lineno) if isinstance(one, (ast.If, ast.Try))]
    within = syntax.own_statements([around[-1]]) if around else ()
    target = ast.unparse(statement.targets[0])
    return [one for one in within if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == target]


def _handed_on(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions whose values an expression may have, or hold in a container."""
    if isinstance(node, (ast.Tuple, ast.List)):
        yield from (one for part in node.elts for one in _handed_on(part))
    elif isinstance(node, ast.Dict):
        yield from (one for part in node.values for one in _handed_on(part))
    elif isinstance(node, ast.IfExp):
        yield from (*_handed_on(node.body), *_handed_on(node.orelse))
    else:
        yield node


def _is_new(node: ast.AST) -> bool:
    """Whether an expression makes a tensor of zeros or of plain numbers."""
    if not isinstance(node, ast.Call):
        return False
    name = syntax.last_name(ast.unparse(node.func))
    asked = any(one.arg == "requires_grad" and ast.unparse(one.value) != "False" for one in node.keywords)
    plain = bool(node.args) and all(
        isinstance(one, ast.Constant) for one in ast.walk(node.args[0]) if isinstance(one, ast.expr)
    )
    return not asked and (name in ("zeros", "zeros_like", "new_zeros") or (name in ("tensor", "new_tensor") and plain))


def _is_returned_early(run: CellRun, statement: ast.stmt) -> bool:
    """Whether a branch of its function returns what a statement makes."""
    inside = syntax.function_at(run.source, statement.lineno)
    if inside is None or not isinstance(statement, ast.Assign):
        return False
    name = ast.unparse(statement.targets[0])
    blocks = (one for one in inside[1].body if isinstance(one, (ast.For, ast.While, ast.If, ast.Try)))
    within = (one for block in blocks for one in syntax.own_statements([block]) if isinstance(one, ast.Return))
    return any(one.value is not None and ast.unparse(one.value) == name for one in within)


def passed_before(record: Record, call: BackwardCall) -> bool:
    """Whether an earlier call of the same line ran: its root had a graph."""
    return any(one.result == "ok" and source_line(one.place) == source_line(call.place) for one in record.calls)


def _to_blame(behind: Sequence[MeasuredConstant]) -> list[MeasuredConstant]:
    """The zeros behind a root, or else the constants; of these what was made in the pass that failed."""
    found = [one for one in behind if one.kind in _MADE]
    found = [one for one in found if one.kind == "zero"] or found
    return [one for one in found if one.latest] or found


_Line = tuple[MeasuredConstant, CellRun, ast.stmt]


def _causes(
    record: Record, call: BackwardCall, root: str, lines: list[_Line], seen: bool, *, alone: bool
) -> list[Cause]:
    told = list({(run.run, one.lineno): place_of(run, one.lineno) for _, run, one in lines}.values())
    parts = [f"{short(place.source)} ({where(place)})" for place in told[:_MOST_TOLD]]
    more = f", and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    new = "new tensors" if len(told) > 1 else "a new tensor"
    nothing_but = "nothing but " if seen else ""
    text = f"In this pass `{root}` is made of {nothing_but}{' and '.join(parts)}{more}: {new} without a graph."
    made, run, statement = lines[0]
    constant, branch = made.kind in _MADE, _branch(run, statement)
    if constant and branch is not None:
        text += f" It came to that {branch}."
    before = passed_before(record, call)
    text += " Earlier passes had a graph." if before else " No line cut one." if seen else ""
    expected = constant and (before or branch is not None or _is_added_to(run, statement))
    if not expected:
        return [Cause(text, _from_the_output(record, call, root), told[0] if constant else None)]
    kept = _with_graph(record, lines, before=before) if alone else None
    fixes = (
        [kept, _skip(record, call, root)] if kept is not None else [_skip(record, call, root), _words(made, told[0])]
    )
    return [Cause(text, fix, told[0]) for fix in fixes if fix is not None]


def _is_added_to(run: CellRun, statement: ast.stmt) -> bool:
    """Whether a loop or a branch of its function adds to what a statement makes: ``loss = loss + margin - d``."""
    inside = syntax.function_at(run.source, statement.lineno)
    if inside is None or not isinstance(statement, ast.Assign):
        return False
    name = ast.unparse(statement.targets[0])
    blocks = (one for one in inside[1].body if isinstance(one, (ast.For, ast.While, ast.If)))
    later = [one for block in blocks for one in syntax.own_statements([block]) if one.lineno > statement.lineno]
    return any(
        name in syntax.targets(one) and (isinstance(one, ast.AugAssign) or name in syntax.names_in(syntax.given(one)))
        for one in later
    )


def _branch(run: CellRun, statement: ast.stmt) -> str | None:
    """Why the statement ran: in which branch it stands. None: in none."""
    around = syntax.statements_at(run.source, statement.lineno)
    for outer in reversed(around[:-1]):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return None
        if isinstance(outer, ast.If):
            inside = any(one is statement or _holds(one, statement) for one in outer.body)
            at_line = where(place_of(run, outer.lineno))
            return f"as {short(ast.unparse(outer.test))} ({at_line}) was {'true' if inside else 'false'}"
        if isinstance(outer, ast.Try) and not any(one is statement or _holds(one, statement) for one in outer.body):
            return f"in the handler of an error ({where(place_of(run, outer.lineno))})"
    return None


def _holds(outer: ast.stmt, inner: ast.stmt) -> bool:
    return outer.lineno <= inner.lineno <= (outer.end_lineno or outer.lineno)


def _with_graph(record: Record, lines: list[_Line], *, before: bool) -> Fix | None:
    """The edits after which what was made new has the graph of the pass, and the same value."""
    edits: dict[tuple[object, ...], TextEdit] = {}
    first: tuple[str, Place] | None = None
    for made, run, statement in lines:
        found = list(_in_sight(record, made, run, statement))
        if not found:
            return None
        for there, node, values in found:
            total = " + ".join(f"{one}.sum()" for one in values)
            zero = f"({total}) * 0" if len(values) > 1 else f"{total} * 0"
            new = zero if made.kind == "zero" and made.single else f"{ast.unparse(node)} + {zero}"
            new = f"({new})" if _is_operand(there, node) else new
            edits |= {
                (one.start, one.cell, one.file): one
                for one in text_edit.replace_node(there.cell, there.source, node, new)
            }
            first = first or (zero, place_of(there, node.lineno))
    if not edits or first is None:
        return None
    sentence = (
        f"Give what is made new a graph, and keep its value: {short(first[0])} ({where(first[1])}). The gradients of "
        "such a pass are zeros."
    )
    # If no pass had a graph so far, it may be that none ever has: then nothing trains, and no error says so.
    return Fix("keep_a_graph", sentence, False, at(first[1]), edits=tuple(edits.values()), choice=not before)


def _is_operand(run: CellRun, node: ast.expr) -> bool:
    """Whether an expression stands where a sum in its place would need brackets."""
    binding = (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Compare, ast.Starred)
    around = (one for one in syntax.nodes_of(run.source) if isinstance(one, binding))
    return any(
        ast.dump(child, include_attributes=True) == ast.dump(node, include_attributes=True)
        for one in around
        for child in ast.iter_child_nodes(one)
    )


def _in_sight(
    record: Record, made: MeasuredConstant, run: CellRun, statement: ast.stmt
) -> Iterator[tuple[CellRun, ast.expr, tuple[str, ...]]]:
    """The calls that made it, or that returned it from a function, where variables beside them have a graph."""
    beside = made.beside
    if beside and beside[0]:
        nodes = _calls(statement, made.by)
        yield from ((run, one, beside[0]) for one in nodes)
        return
    inside = syntax.function_at(run.source, statement.lineno)
    returned = isinstance(statement, ast.Return) and isinstance(statement.value, ast.Call)
    if inside is None or not returned or len(_calls(statement, made.by)) != 1 or len(beside) < 2 or not beside[1]:
        return
    for caller, outer in statements(record, made.lines[1:2]):
        yield from ((caller, one, beside[1]) for one in _calls(outer, inside[1].name)[:1])


def _calls(statement: ast.stmt, name: str) -> list[ast.expr]:
    """The calls of a function in a statement that is not a block."""
    if hasattr(statement, "body"):
        return []
    nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return [node for node in nodes if syntax.last_name(ast.unparse(node.func)) == name]


def _words(made: MeasuredConstant, place: Place) -> Fix:
    """What to do where no variable in sight has a graph."""
    instead = "a new tensor" if made.latest else "what is made once"
    words = (
        f"Or make it of what the model returned in this pass, in place of {instead} ({where(place)}): "
        "`out.sum() * 0` is zero, and has a graph."
    )
    return Fix("keep_a_graph", words, False, at(place))


def _from_the_output(record: Record, call: BackwardCall, root: str) -> Fix:
    """What to do where it is not known that other passes have a graph."""
    sights = record.scenes.get(call.n, Scene()).sights
    values = {name: one for sight in sights for name, one in sight.values.items() if not name.startswith("_")}
    known = tuple(name for name, one in values.items() if one.kind == "tensor" and one.requires_grad)
    has = f" There {names(known)} {'has' if len(known) == 1 else 'have'} one." if known else ""
    return Fix("use_the_output", f"Compute `{root}` from what has a graph, as the model's output has.{has}", False)


def _skip(record: Record, call: BackwardCall, root: str) -> Fix | None:
    """Leave the call out in passes that have nothing to train by."""
    line = TextLine(call.place.cell, call.place.file, call.place.line or 0)
    found = next(statements(record, (line,)), None)
    if found is None or not root.isidentifier() or ast.unparse(found[1]) != f"{root}.backward()":
        return None
    run, statement = found
    place = place_of(run, statement.lineno)
    new = [f"if {root}.requires_grad:", f"    {ast.unparse(statement)}"]
    edits = text_edit.replace_lines(run.cell, run.source, statement.lineno, statement.end_lineno or 0, new)
    words = f"Leave the call out where there is nothing to train by: `{new[0]}` ({where(place)})."
    return Fix("skip_the_call", words, False, at(place), edits=edits, choice=True)
