"""Mistakes that raise nothing: a backward that reaches nothing, a retain_graph that nothing used,
a `.data` update behind autograd's back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.analysis import source
from graphwidget.analysis.story import own_path, root_name
from graphwidget.analysis.words import short, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record, bytes_text

_CREATORS = ("tensor", "zeros", "ones", "rand", "randn", "full", "arange", "linspace", "empty", "eye", "Parameter")
_VALUES = ("item", "tolist", "numpy")


def find(record: Record) -> Iterator[Finding]:
    """Everything that went wrong in silence."""
    yield from _nothing_ran(record)
    yield from _retained_for_nothing(record)
    yield from _data_writes(record)


def _nothing_ran(record: Record) -> Iterator[Finding]:
    """`loss.requires_grad = True` on a loss without a graph: backward runs, and reaches only `loss` itself."""
    for call in record.calls:
        root = call.roots[0] if len(call.roots) == 1 else None
        path = own_path(root)
        if call.result != "ok" or root is None or not root.is_leaf or path is None:
            continue
        made = _computed(record, path)
        if made is None:
            continue
        yield Finding(
            "silent",
            "warning",
            f"`{path}` was made without a graph (In[{made[0]}], line {made[1]}), and told to require grad. "
            "So it is a leaf: backward ran no node and reached no parameter.",
            f"`{root_name(call)}.backward()` did nothing: 0 nodes ran.",
            call.n,
            tensor=path,
            fixes=(
                Fix(
                    "remove_no_grad",
                    f"Find what cut the graph before `{path}` was computed. Asking for grad afterwards is too late.",
                    False,
                    made,
                ),
            ),
        )


def _computed(record: Record, name: str) -> tuple[int, int] | None:
    """(cell, line) where `name` was computed from other tensors rather than created, or created from their values."""
    for _, run in sorted(record.runs.items(), reverse=True):
        for statement in reversed(source.assignments(run.source, name)):
            value = getattr(statement, "value", None)
            if value is None or run.cell is None:
                continue
            created = isinstance(value, ast.Call) and ast.unparse(value.func).rsplit(".", 1)[-1] in _CREATORS
            told = any(c.startswith(f"{name}.requires_grad_") for c in source.calls_in(value))
            new = created and not _from_values(record, value)
            return None if new or told or isinstance(value, ast.Constant) else (run.cell, statement.lineno)
    return None


def _from_values(record: Record, value: ast.AST) -> bool:
    """Whether an expression, or what a name in it was assigned, takes the values out of a tensor: ``y.item()``."""
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
    told: set[tuple[int | None, int | None]] = set()
    for position, call in enumerate(record.calls):
        line = (call.place.cell, call.place.line)
        if not call.retain_graph or call.create_graph or call.result != "ok" or line in told or not call.executed:
            continue
        kept = set(call.executed)
        later = record.calls[position + 1 :]
        if any(not other.executed or kept.intersection(other.executed) for other in later):
            continue
        if kept.intersection(record.snapshot.index_of):
            continue  # still alive: it may yet be used
        told.add(line)
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


def _data_writes(record: Record) -> Iterator[Finding]:
    """A write through `.data` between a forward and its backward: no check sees it, the gradient is wrong."""
    for run in record.runs.values():
        for name, line in _data_targets(run):
            for call in record.calls[-50:]:
                if call.place.run is not None and call.place.run > run.run and _saved_before(call, name, run.run):
                    yield _data_write(run, name, line, call)
                    break


def _data_targets(run: CellRun) -> Iterator[tuple[str, int]]:
    tree = source.parse(run.source)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, (ast.AugAssign, ast.Assign)):
            for target in source.targets(node):
                if ".data" in target:
                    yield target.split(".data", 1)[0], node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = ast.unparse(node.func)
            if ".data." in called and node.func.attr.endswith("_"):
                yield called.split(".data.", 1)[0], node.lineno


def _saved_before(call: BackwardCall, name: str, run: int) -> bool:
    """Whether the call's graph saved the tensor `name` in a run before `run`, and still held it."""
    graph = call.graph
    if graph is None or call.result != "ok":
        return False
    for index in range(len(graph)):
        place: Place | None = graph.place_of(index)
        if place is None or place.run is None or place.run >= run:
            continue
        for slot in graph.slots_of(index):
            at = graph.slot_storage[slot]
            if at >= 0 and graph.slot_state[slot] == 0 and name in graph.storages.owners.get(at, ()):
                return True
    return False


def _data_write(run: CellRun, name: str, line: int, call: BackwardCall) -> Finding:
    text = source.line_text(run.source, line)
    place = Place(run.cell, line, text, run.cell, line, run=run.run)
    return Finding(
        "silent",
        "warning",
        f"{short(text)} ({where(place)}) changed `{name}` after the graph had saved it. `.data` hides the change from "
        f"autograd's check. {where(call.place) or 'The call'} used the new values: its gradients are wrong.",
        f"A gradient is silently wrong: `{name}` was changed through `.data`.",
        call.n,
        tensor=name,
        modified_at=place,
        fixes=(
            Fix("zero_grad_or_step_order", f"Change `{name}` after the backward.", True, None),
            Fix(
                "no_grad_or_item",
                "Write under `with torch.no_grad():` without `.data`: then torch checks.",
                True,
                None,
            ),
        ),
    )
