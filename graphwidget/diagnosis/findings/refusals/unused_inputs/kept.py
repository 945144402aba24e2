"""A tensor that was computed in an earlier pass and is read in this one: it depends on the inputs of that pass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.findings.refusals.makers import line_that_made
from graphwidget.diagnosis.findings.refusals.unused_inputs.below import below, below_nodes, same_name
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import is_assignable, local, root_of
from graphwidget.diagnosis.wording import at, is_notebook_s, place_of, short, where
from graphwidget.model import BackwardCall, Fix, Owner, Place, Record, Snapshot, TensorRef

__all__ = ["kept_from_before"]


def kept_from_before(
    record: Record, call: BackwardCall, asked: TensorRef | None, root: str, shown: str
) -> tuple[str, Place | None, tuple[Fix, ...]] | None:
    """Why a root leads to an older tensor of the input's name and not to the input: what was kept, its line, and fixes.

    That is so where the root leads to what an earlier call knew under the name of the input, and to a tensor that is
    kept since then. It was made before the input, so it cannot depend on it.
    """
    graph = call.graph
    if graph is None or asked is None or asked.node in below(graph, call):
        return None
    for earlier in reversed(record.calls):
        then = earlier.graph
        if earlier.n >= call.n or then is None:
            continue
        reached = {graph.uid[index] for index in below(graph, call) if not _has_a_name(graph, index)}
        old = [one for one in _of_the_name(then, earlier, asked) if one in reached]
        if not old:
            continue
        kept = _kept(graph, call, then, graph.index_of[old[0]])
        return _told(record, call, kept, root, shown) if kept is not None else None
    return None


def _of_the_name(graph: Snapshot, call: BackwardCall, asked: TensorRef) -> Iterator[int]:
    """The uids of what a call's graph has under the name of an input: a leaf, or what the call itself asked for."""
    named = [ref.node for ref in call.inputs or () if ref.node >= 0 and same_name(ref.paths, asked.paths)]
    named += [index for index, leaf in graph.leaves.items() if same_name(leaf.paths, asked.paths)]
    yield from dict.fromkeys(graph.uid[index] for index in named)


def _has_a_name(graph: Snapshot, index: int) -> bool:
    """Whether a leaf has a name of its own now: then it is no earlier value of another's."""
    leaf = graph.leaves.get(index)
    return leaf is not None and bool(leaf.paths)


def _kept(graph: Snapshot, call: BackwardCall, then: Snapshot, old: int) -> Owner | None:
    """The youngest tensor with a name that leads to the old input, was there at an earlier call, and is still used."""
    reached = below(graph, call)
    found = [
        owner
        for owner in graph.owners
        if owner.node in reached
        and owner.node != old
        and graph.uid[owner.node] in then.index_of
        and not is_notebook_s(owner.path)
        and old in below_nodes(graph, (owner.node,))
    ]
    return max(found, key=lambda owner: graph.seq[owner.node], default=None)


def _told(
    record: Record, call: BackwardCall, kept: Owner, root: str, shown: str
) -> tuple[str, Place | None, tuple[Fix, ...]]:
    name = local(kept.path)
    graph = call.graph
    computed = graph.place_of(kept.node) if graph is not None else None
    stored = _stored(record, name)
    line = f", which {short(stored.source)} ({where(stored)}) keeps" if stored is not None else ""
    made = f" It was computed in {where(computed)}" if where(computed) else " It was computed"
    text = (
        f"`{root}` is computed with `{name}`{line}.{made} in an earlier pass, before this {shown} existed, and leads "
        f"to the {shown} of that pass. So no path leads from `{root}` to the new one."
    )
    return text, stored or computed, (_anew(record, call, name, stored, computed),)


def _stored(record: Record, path: str) -> Place | None:
    """The only line that gives a variable, an attribute or an element of a container its value; None: unknown."""
    if "[" not in path:
        return line_that_made(record, path)
    holder = re.split(r"[.\[]", path.rpartition("[")[0])[-1].strip("]'\"")
    found = [
        (run, one)
        for run in Cells.of(record).latest
        for one in syntax.nodes_of(run.source)
        if isinstance(one, ast.Assign)
        and any(
            isinstance(to, ast.Subscript) and syntax.last_name(ast.unparse(to.value)) == holder for to in one.targets
        )
    ]
    return place_of(found[0][0], found[0][1].lineno) if len(found) == 1 else None


def _anew(record: Record, call: BackwardCall, name: str, stored: Place | None, computed: Place | None) -> Fix:
    """Forget what is kept at the beginning of each pass, where the program computes it if it is None."""
    there = where(stored or computed)
    text = f"Compute `{name}` anew in each pass{f' ({there})' if there else ''}, from what the input is then."
    spot = at(call.place)
    edits: text_edit.Edits = ()
    if spot is not None and _is_computed_if_none(record, name):
        edits = _forgotten(record, spot, name)
    if edits:
        text = f"Compute `{name}` anew in each pass: `{name} = None` before it is used."
    return Fix("recompute_in_loop", text, False, spot if edits else at(stored or computed), edits=edits)


def _is_computed_if_none(record: Record, name: str) -> bool:
    """Whether the program gives an attribute the value None, and asks whether it is None."""
    attribute = name.rpartition(".")[2]
    if "." not in name or not is_assignable(name):
        return False
    nodes = [node for run in Cells.of(record).latest for node in syntax.nodes_of(run.source)]
    asks = any(
        isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Attribute)
        and node.left.attr == attribute
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
        for node in nodes
    )
    gives = any(
        isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, ast.Constant)
        and node.value.value is None
        and any(target.endswith(f".{attribute}") for target in syntax.targets(node))
        for node in nodes
    )
    return asks and gives


def _forgotten(record: Record, spot: tuple[int, int], name: str) -> text_edit.Edits:
    """The line at the beginning of the loop around a call, in the function that calls."""
    text = Cells.of(record).text(spot[0])
    loop, inside = syntax.loop_at(text, spot[1]), syntax.function_at(text, spot[1])
    if loop is None or (inside is not None and loop.lineno < inside[1].lineno):
        return ()
    own = inside[1].body if inside is not None else []
    hidden = {target for one in syntax.own_statements(own) for target in syntax.targets(one)}
    if root_of(name) in hidden:
        return ()
    return text_edit.insert_before(spot[0], text, loop.body[0], [f"{name} = None"])
