"""Custom Functions whose `backward` computes with what has no graph: ``ctx.cosine = torch.cos(x)`` in `forward`.

Nothing that a `forward` computes is recorded. Its inputs and outputs keep their graph on `ctx`, and what was computed
from them in between has none: a derivative of the gradient does not lead through it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.cutting import NOT_DIFFERENTIABLE, cuts_in, indices_only
from graphwidget.diagnosis.no_graph.gradients.computed_again import computed_again
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, functions
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import Fix, Kind, NodeFacts, Record, Snapshot

__all__ = ["SAVE_THE_INPUT", "applied_functions", "kept_by_forward"]

SAVE_THE_INPUT = "save_the_input"

# Besides those of `NOT_DIFFERENTIABLE`: what does not depend on small changes of a tensor, or is the tensor itself.
_FLAT = {
    *NOT_DIFFERENTIABLE,
    *("sign", "sgn", "round", "floor", "ceil", "trunc", "size", "dim", "numel", "nelement", "element_size", "stride"),
    *("shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "len", "range", "type", "isinstance"),
    *("zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "empty_like", "bernoulli", "get_device"),
    *("new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "is_contiguous"),
}
_ITSELF = {"contiguous", "to", "cpu", "cuda", "float", "double", "requires_grad_"}
# Operations by which a backward keeps its gradient from being differentiated.
_CUTS = ("detach", "detach_", "data", "item", "numpy", "tolist", "tensor")


class Kept(NamedTuple):
    """A value that a `forward` computed, and how `backward` reads it: ``ctx.cosine``, or a name that it unpacks."""

    value: ast.expr
    made: ast.stmt  # the line that computes it
    kept: ast.stmt  # the line that keeps it
    read_as: str
    reads: ast.stmt
    inputs: tuple[str, ...]  # what of `forward` it was computed from


def applied_functions(
    record: Record, graph: Snapshot, nodes: Collection[int], within: Collection[int] = ()
) -> Iterator[tuple[FunctionText, tuple[str, ...]]]:
    """The custom Functions of the program among nodes, each with the names of the inputs that count.

    These are the ones that lead to `within`; without it, all.
    """
    texts = {f"{one.name}Backward": one for one in functions(record)}
    found: dict[str, set[str]] = {}
    for index in sorted(nodes):
        text = texts.get(graph.name_of(index)) if graph.kind[index] == Kind.CUSTOM else None
        if text is None or text.inputs is None:
            continue
        positions = [one for one in graph.facts.get(index, NodeFacts()).arguments if one >= 0]
        following = list(graph.next(index))
        known = len(positions) == len(following) and all(one < len(text.inputs) for one in positions)
        led = [text.inputs[one] for one, node in zip(positions, following) if not within or node in within]
        found.setdefault(graph.name_of(index), set()).update(led if known else text.inputs)
    for name, counted in found.items():
        yield texts[name], tuple(one for one in texts[name].inputs or () if one in counted)


def kept_by_forward(
    record: Record, graph: Snapshot, nodes: Collection[int], within: Collection[int] = ()
) -> Cause | None:
    """The cause if Functions among these nodes have a `backward` that computes with what has no graph."""
    found: list[Cause] = []
    for function, counted in applied_functions(record, graph, nodes, within):
        cause = _kept(function, counted) or _cut_in_backward(function)
        found += [cause] if cause is not None else []
    if not found:
        return None
    first = found[0]
    edits = tuple(edit for one in found for edit in one.fix.edits) if all(one.fix.edits for one in found) else ()
    sentence = " ".join(dict.fromkeys(one.fix.text for one in found))
    fix = Fix(first.fix.id, sentence, False, first.fix.at, first.fix.price, edits=edits)
    return Cause(" ".join(one.text for one in found), fix, first.place)


def _kept(function: FunctionText, counted: Collection[str]) -> Cause | None:
    found = list(_values(function, counted))
    if not found:
        return None
    run, one, name = function.run, found[0], function.name
    setting = "setup_context" if function.method("setup_context") is not None else "forward"
    made, kept, reads = (place_of(run, each.lineno) for each in (one.made, one.kept, one.reads))
    line = f"{short(made.source)} ({where(made)})"
    by = "" if at(made) == at(kept) else f", kept by {short(kept.source)} ({where(kept)})"
    text = (
        f"`{name}.backward` computes with `{one.read_as}` ({short(reads.source)}, {where(reads)}). `{name}.{setting}` "
        f"computed that: {line}{by}. Nothing that `{setting}` computes is recorded, so no derivative of the gradient "
        f"leads through it to {names(one.inputs)}."
    )
    again = computed_again(function, [(each.read_as, each.value, each.kept) for each in found], counted)
    if again is not None:
        lines = ", ".join(f"`{each}`" for each in again.lines)
        sentence = f"Let `{name}` save its input in place of that, and compute it in `backward`: {lines}."
        return Cause(
            text, Fix(SAVE_THE_INPUT, sentence, False, at(made), "It is computed twice.", edits=again.edits), made
        )
    sentence = (
        f"Let `{name}` save {names(one.inputs)} by `ctx.save_for_backward`, and compute "
        f"{short(ast.unparse(one.value))} in `backward`, with PyTorch's operations: there they are recorded."
    )
    return Cause(text, Fix("save_the_input", sentence, False, at(made)), made)


def _values(function: FunctionText, counted: Collection[str]) -> Iterator[Kept]:
    """What a `forward` computed from inputs, and kept, and what `backward` computes with."""
    setting, backward = function.method("setup_context") or function.method("forward"), function.backward
    if setting is None or backward is None or function.once is not None:
        return
    statements = list(syntax.own_statements(setting.body))
    if any(syntax.last_name(one) in ("enable_grad", "set_grad_enabled") for one in syntax.calls_in(setting)):
        return  # it records a graph of its own
    inputs = set(counted)
    returned = {ast.unparse(one) for value in function.results for one in _elements(value.value)}
    if setting.name == "setup_context":
        _, given, *output = [one.arg for one in setting.args.args]
        inputs, returned = {given}, set(output)
        unpacking = [one for one in statements if isinstance(one, ast.Assign) and ast.unparse(one.value) == given]
        inputs |= {name for one in unpacking for name in syntax.targets(one)}
        statements = [one for one in statements if one not in unpacking]
    for label, value, kept in _stored(setting, statements, backward):
        if isinstance(value, ast.Name) and value.id in returned:
            continue
        found = _computed_from(value, statements, inputs)
        reads = next((one for one in syntax.own_statements(backward.body) if _computes_with(one, label)), None)
        if not found or reads is None:
            continue
        own = [one for one in statements if isinstance(value, ast.Name) and value.id in syntax.targets(one)]
        yield Kept(value, own[-1] if own else kept, kept, label, reads, tuple(sorted(found)))


def _stored(
    setting: ast.FunctionDef, statements: list[ast.stmt], backward: ast.FunctionDef
) -> Iterator[tuple[str, ast.expr, ast.stmt]]:
    """What is kept on `ctx`: how `backward` reads it, its value, and the line."""
    ctx = setting.args.args[0].arg if setting.args.args else "ctx"
    there = backward.args.args[0].arg if backward.args.args else "ctx"
    for one in statements:
        if isinstance(one, ast.Assign) and len(one.targets) == 1:
            targets, values = _elements(one.targets[0]), _elements(one.value)
            if len(targets) == len(values):
                for target, value in zip(targets, values):
                    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == ctx:
                        yield f"{there}.{target.attr}", value, one
        call = one.value if isinstance(one, ast.Expr) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func) == f"{ctx}.save_for_backward":
            for place, value in enumerate(call.args):
                label = _unpacked_as(backward, there, place, len(call.args))
                if label is not None:
                    yield label, value, one


def _unpacked_as(backward: ast.FunctionDef, ctx: str, place: int, count: int) -> str | None:
    """The name that `backward` gives a saved tensor."""
    for one in syntax.own_statements(backward.body):
        if isinstance(one, ast.Assign) and ast.unparse(one.value) == f"{ctx}.saved_tensors":
            targets = _elements(one.targets[0])
            unpacks = isinstance(one.targets[0], (ast.Tuple, ast.List)) and len(targets) == count
            return ast.unparse(targets[place]) if unpacks else None
        if isinstance(one, ast.Assign) and ast.unparse(one.value) == f"{ctx}.saved_tensors[{place}]":
            return ast.unparse(one.targets[0])
    return None


def _elements(node: ast.expr | None) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node] if node is not None else []


def _computed_from(value: ast.expr, statements: list[ast.stmt], inputs: Collection[str]) -> set[str]:
    """The inputs of which a value is a function that has a derivative; none if it is one of them itself."""
    own = [one for one in statements if isinstance(value, ast.Name) and value.id in syntax.targets(one)]
    if _is_itself(value) or (isinstance(value, ast.Name) and not own):
        return set()
    found, seen, queue = set[str](), set[str](), [value]
    for node in queue:
        for name in sorted(_read(node)):
            made = [one for one in statements if name in syntax.targets(one) and not indices_only(one, name)]
            if not made and name in inputs:
                found.add(name)
            elif name not in seen:
                seen.add(name)
                queue += [given for one in made if isinstance(given := syntax.given(one), ast.expr)]
    itself = own and all(isinstance(one, ast.Assign) and _is_itself(one.value) for one in own)
    return set() if itself else found


def _is_itself(value: ast.expr) -> bool:
    """``x.contiguous()``: perhaps the input itself."""
    called = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _ITSELF
    return (
        called
        and isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and isinstance(value.func.value, ast.Name)
    )


def _read(node: ast.AST) -> set[str]:
    """The names and attributes of `ctx` that count in a value: those in comparisons, shapes and the like do not."""
    if isinstance(node, (ast.Compare, ast.Lambda)):
        return set()
    last = node.attr if isinstance(node, ast.Attribute) else ""
    if isinstance(node, ast.Call):
        last = syntax.last_name(ast.unparse(node.func))
    if last in _FLAT:
        return set()
    if isinstance(node, (ast.Name, ast.Attribute)) and (text := ast.unparse(node)).replace(".", "").isidentifier():
        return {text, *(_read(node.value) if isinstance(node, ast.Attribute) else ())}
    skipped = node.test if isinstance(node, ast.IfExp) else node.slice if isinstance(node, ast.Subscript) else None
    return {name for child in ast.iter_child_nodes(node) if child is not skipped for name in _read(child)}


def _computes_with(statement: ast.stmt, label: str) -> bool:
    if hasattr(statement, "body") or list(syntax.targets(statement)) == [label]:
        return False
    value = getattr(statement, "value", None)
    return value is not None and label in _read(value)


# ------------------------------------------------------------------ backward itself


def _cut_in_backward(function: FunctionText) -> Cause | None:
    """``x.detach()`` in `backward`, or a block without grad mode."""
    backward, run = function.backward, function.run
    if backward is None or function.once is not None:
        return None
    for one in syntax.own_statements(backward.body):
        value = getattr(one, "value", None)
        if value is None or hasattr(one, "body") or not _read(value):
            continue
        switch = grad_modes.around(run.source, one)
        by = next((by for by, _ in cuts_in(value) if by in _CUTS), None)
        if by is None and (switch is None or switch.off is not True):
            continue
        place = place_of(run, one.lineno)
        how = f"leaves the graph by `{by}`" if by is not None else f"runs under `{switch.text if switch else ''}`"
        text = (
            f"In `{function.name}.backward`, {short(place.source)} ({where(place)}) {how}: no derivative of the "
            "gradient leads through it."
        )
        out = f"without `{by}`" if by is not None else "outside of that block"
        sentence = f"Compute it {out}: with `create_graph=True`, what `backward` computes is recorded."
        return Cause(text, Fix("differentiable_backward", sentence, False, at(place)), place)
    return None
