"""Mistakes that raise nothing: an empty backward, an unused retain_graph, a write that autograd cannot see."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.no_graph.leaves import forced_leaf
from graphwidget.diagnosis.no_graph.leaves.fresh_leaf import measured_leaf
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.pytorch.custom_functions import functions
from graphwidget.diagnosis.wording import lasting_name, names, own_path, root_name, short, source_line, where
from graphwidget.model import (
    BackwardCall,
    CellRun,
    Finding,
    Fix,
    Record,
    SlotState,
    Snapshot,
    Write,
    bytes_text,
    in_order,
)

MOST_CALLS = 100  # calls examined for writes that autograd did not see
_CREATORS = ("tensor", "zeros", "ones", "rand", "randn", "full", "arange", "linspace", "empty", "eye", "Parameter")
_VALUES = ("item", "tolist", "numpy")


def find(record: Record) -> Iterator[Finding]:
    """Findings for mistakes that raised nothing."""
    yield from _nothing_ran(record)
    yield from _retained_for_nothing(record)
    yield from _unseen_writes(record)


def _nothing_ran(record: Record) -> Iterator[Finding]:
    """`loss.requires_grad = True` on a loss without a graph: backward runs, and reaches only `loss` itself."""
    for call in record.calls:
        root = call.roots[0] if len(call.roots) == 1 else None
        if call.result != "ok" or root is None or not root.is_leaf:
            continue
        path = own_path(root)
        if path is None:
            continue
        made = _computed(record, path)
        if made is None:
            continue
        leaf = measured_leaf(record, call)
        undone = forced_leaf.undone(record, call, leaf) if leaf is not None else []
        text = f"Find what cut the graph before `{path}` was computed. Asking for grad afterwards is too late."
        yield Finding(
            "silent",
            "warning",
            f"`{path}` was made without a graph (In[{made[0]}], line {made[1]}), and then set to require grad. "
            f"So it is a leaf: backward reached nothing but `{path}` itself.{' ' if undone else ''}"
            f"{undone[0].text if undone else ''}",
            f"`{root_name(call)}.backward()` reached no parameter.",
            call.n,
            tensor=path,
            cut_at=undone[0].place if undone else None,
            fixes=tuple(one.fix for one in undone) or (Fix("remove_no_grad", text, False, made),),
        )


def _computed(record: Record, name: str) -> tuple[int, int] | None:
    """(cell, line) where `name` was computed from other tensors rather than created, or created from their values.

    Only for variables that a line makes require grad: any other leaf may be intended, as a parameter with two names.
    """
    if not any(_is_made_to_require_grad(run, name) for run in record.runs.values()):
        return None
    for _, run in sorted(record.runs.items(), reverse=True):
        for statement in reversed(source.assignments(run.source, name)):
            value = getattr(statement, "value", None)
            if value is None or run.cell is None:
                continue
            created = isinstance(value, ast.Call) and ast.unparse(value.func).rsplit(".", 1)[-1] in _CREATORS
            asked = any(c.startswith(f"{name}.requires_grad_") for c in source.calls_in(value))
            new = created and not _from_values(record, value)
            return None if new or asked or isinstance(value, ast.Constant) else (run.cell, statement.lineno)
    return None


def _is_made_to_require_grad(run: CellRun, name: str) -> bool:
    """Whether a cell makes a variable require grad: ``loss.requires_grad_()``, ``loss = f(requires_grad=True)``."""
    tree = source.parse(run.source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Attribute) and node.attr in ("requires_grad_", "requires_grad"):
            if ast.unparse(node.value) == name and (node.attr == "requires_grad_" or isinstance(node.ctx, ast.Store)):
                return True
        if isinstance(node, ast.stmt) and name in source.targets(node):
            calls = [n for n in ast.walk(source.given(node)) if isinstance(n, ast.Call)]
            keywords = [k for call in calls for k in call.keywords if k.arg == "requires_grad"]
            methods = [call.func.attr for call in calls if isinstance(call.func, ast.Attribute)]
            if keywords or "requires_grad_" in methods:
                return True
    return False


def _from_values(record: Record, value: ast.AST) -> bool:
    """Whether an expression, or the assignment of a name in it, takes plain values from a tensor: ``y.item()``."""
    wanted, seen = [value], set[str]()
    while wanted:
        node = wanted.pop()
        if any(called.rsplit(".", 1)[-1] in _VALUES for called in source.calls_in(node)):
            return True
        for name in sorted(source.names_in(node) - seen):
            seen.add(name)
            wanted += [made for run in record.runs.values() for made in source.assignments(run.source, name)[-1:]]
    return False


def _retained_for_nothing(record: Record) -> Iterator[Finding]:
    """A retain_graph=True after which no call ran any of the kept nodes."""
    reported: set[tuple[int | None, int | None]] = set()
    for position, call in enumerate(record.calls):
        if not call.retain_graph or call.create_graph or call.result != "ok" or not call.executed:
            continue
        line = (call.place.cell, call.place.line)
        if line in reported:
            continue
        kept = set(call.executed)
        later = record.calls[position + 1 :]
        if any(not other.executed or kept.intersection(other.executed) for other in later):
            continue
        if kept.intersection(record.snapshot.index_of):
            continue  # still alive: a later call may use it
        run = record.runs.get(call.place.run) if call.place.run is not None else None
        if run is not None and "retain_graph" not in run.source:
            continue  # a function of a library set it: the user's code has nothing to change
        reported.add(line)
        if line in _needed(record):
            continue  # another pass of the same line needs it
        graph = call.graph
        held = graph.held_bytes() if graph is not None else 0
        yield Finding(
            "silent",
            "info",
            f"Nothing used what `retain_graph=True` kept ({bytes_text(held)}); you can drop it.",
            f"{where(call.place)}: this retain_graph was not needed.",
            call.n,
            bytes=held,
        )


def _needed(record: Record) -> set[tuple[int | None, int | None]]:
    """The lines of calls whose kept nodes a later call ran, or may have run."""
    found = set()
    for position, call in enumerate(record.calls):
        line, kept = (call.place.cell, call.place.line), set(call.executed)
        if call.retain_graph and line not in found:
            later = record.calls[position + 1 :]
            if not kept or any(not other.executed or kept.intersection(other.executed) for other in later):
                found.add(line)
    return found


def _unseen_writes(record: Record) -> Iterator[Finding]:
    """A write between a forward and its backward that bumped no version counter: PyTorch's check does not see it."""
    every = (*record.hidden, *(write for write in record.writes if not write.optimizer))
    reported: set[object] = set()
    known = [(call, call.graph) for call in record.calls if call.graph is not None and call.result == "ok"]
    for call, graph in known[-MOST_CALLS:] if every else ():
        oldest = min((number for number in graph.seq if number >= 0), default=0)
        since = [write for write in every if write.after_calls <= call.n and write.number > oldest]
        since = [write for write in since if not _in_a_function(record, write)]
        saved = list(_saved(record, graph, call, {key for write in since for key in write.storages}))
        for write in since:
            tensors = in_order({name for key, seq, name in saved if key in write.storages and seq < write.number})
            line = source_line(write.place)
            if tensors and line not in reported:
                reported.add(line)
                yield _unseen_write(write, tensors, call)


def _in_a_function(record: Record, write: Write) -> bool:
    """Whether the forward of a custom Function wrote, or code that it called: it saves when it has returned."""
    forwards = [(one.run.cell, made) for one in functions(record) if (made := one.method("forward")) is not None]
    return any(
        cell == frame.cell and made.lineno <= (frame.line or 0) <= (made.end_lineno or 0)
        for cell, made in forwards
        for frame in (write.place, *write.place.stack)
    )


def _saved(record: Record, graph: Snapshot, call: BackwardCall, keys: set[int]) -> Iterator[tuple[int, int, str]]:
    """Saved tensors in some storages, of nodes that a call ran, which autograd took for unmodified.

    For each the key of the storage, the sequence number of the node, and the tensor's name.
    """
    if keys.isdisjoint(graph.storages.key):
        return
    ran = set(call.executed)
    for slot, at in enumerate(graph.slot_storage):
        if at < 0 or graph.slot_state[slot] != SlotState.HELD or graph.storages.key[at] not in keys:
            continue
        index = graph.node_with(slot)
        if not _reads(graph, index, slot):
            continue
        owners = graph.storages.owners.get(at)
        if owners and graph.uid[index] in ran and graph.seq[index] >= 0:
            yield graph.storages.key[at], graph.seq[index], lasting_name(record, owners)


_BILINEAR = re.compile(r"\w*(?:Conv|Linear)\w*Backward\d*$")
_OF_SIZES = re.compile(r"(?:Adaptive|Max|Avg|Reflection|Replication)\w*(?:Pool|Pad)\w*Backward\d*$")


def _reads(graph: Snapshot, index: int, slot: int) -> bool:
    """Whether the gradient of a node may depend on the values in one of its slots.

    Pooling saves its input only for the sizes. A convolution always saves its input and its weight, and needs each one
    for the gradient of the other: with a single edge, only the tensor on the other side of that edge matters.
    """
    name, tensor = graph.name_of(index), graph.slot_names[graph.slot_name[slot]]
    if _OF_SIZES.match(name):
        return tensor != "self"
    edges = graph.next(index)
    if _BILINEAR.match(name) and len(edges) == 1:
        saved = graph.slot_storage[slot]
        leaf = graph.leaves.get(edges[0])
        return leaf is None or saved < 0 or not set(leaf.paths) & set(graph.storages.owners.get(saved) or ())
    return True


def _unseen_write(write: Write, tensors: tuple[str, ...], call: BackwardCall) -> Finding:
    shown = names(tensors)
    through = ".data" in write.by
    how = "`.data` hides" if through else "It shares its memory, which hides"
    by = where(call.place) or "The call"
    return Finding(
        "silent",
        "warning",
        f"{short(write.by)} ({where(write.place)}) wrote to {shown} after the graph had saved it. {how} that from "
        f"autograd's check. {by} went by what is there now, so what it computed may be wrong.",
        f"A gradient may be silently wrong: {shown} was written to{' through `.data`' if through else ''}.",
        call.n,
        tensor=tensors[0],
        modified_at=write.place,
        fixes=(
            Fix("zero_grad_or_step_order", f"Change {shown} after the backward.", True, None),
            Fix(
                "no_grad_or_item",
                "Write under `with torch.no_grad():` without `.data`: then torch checks.",
                True,
                None,
            ),
        ),
    )
