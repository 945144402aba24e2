"""What a backward call would do: autograd's engine, simulated on a snapshot.

`forecast` answers without running anything: would the call succeed; if not, why and at which node;
which nodes would run, in which order; which saved tensors would be freed; which leaves would get a
gradient. The simulation follows the engine step for step (CPU, one thread):

1. Checks before the engine starts: every root must be a scalar or have a gradient given, then every
   root and every input must require grad.
2. Dependencies are counted over everything reachable from the roots.
3. `inputs=` narrows the run to nodes with a path to an input. `autograd.grad` captures the gradient
   in front of a non-leaf input's node; `backward(inputs=)` runs that node as well.
4. The ready node with the highest sequence number runs next (`heap.py`). It unpacks what it saved,
   and that is where a call fails (`rules.py`).
5. Each node that ran releases what it saved unless the graph is retained. So a call that fails has
   freed the saved tensors of all nodes that ran before.

What Python cannot see is stated: a forecast is unknown (`ok` is None) or lists what it assumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from graphwidget.engine.rules import Stop
from graphwidget.engine.run import Run, called
from graphwidget.model import (
    KEEPS_MEMORY,
    Forecast,
    Kind,
    Node,
    NodeFacts,
    SavedTensor,
    SlotState,
    Snapshot,
    TensorRef,
)

__all__ = ["after", "afterwards", "forecast", "result"]

Api = Literal["backward", "autograd.grad", "grad"]


def forecast(
    snapshot: Snapshot,
    roots: Sequence[TensorRef],
    *,
    inputs: Sequence[TensorRef] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    api: Api = "backward",
    allow_unused: bool = True,
    grad_given: bool = False,
) -> Forecast:
    """Simulate one backward call on `snapshot`.

    Parameters
    ----------
    snapshot
        The graph; it must hold every node that the roots reach.
    roots, inputs
        The tensors, as `snapshot.roots` or `capture` describe them.
    retain_graph
        None: the same as `create_graph`, which is torch's default.
    api
        ``"backward"``, or ``"autograd.grad"`` (``"grad"`` for short).
    allow_unused
        Only for `autograd.grad`: whether an input may get no gradient.
    grad_given
        Whether gradients for the roots are passed, so that they need not be scalars.

    Returns
    -------
    Forecast
        `ok` is None where the outcome cannot be known; `assumes` lists the assumptions.
    """
    keep = create_graph if retain_graph is None else retain_graph
    run = Run(snapshot, roots, inputs or None, create_graph, captures=api != "backward")
    return result(run, keep, allow_unused=allow_unused, grad_given=grad_given)


def result(run: Run, keep: bool, *, allow_unused: bool = True, grad_given: bool = False) -> Forecast:
    """Simulate a call that has not begun. `keep`: it keeps what its nodes saved. The rest: see `forecast`."""
    refused = _refused_at_once(run.roots, run.inputs, grad_given)
    if refused:
        return replace(refused, releases=not keep)
    stop, at = run.to_the_end()
    if stop is None and not allow_unused and run.inputs and run.captures:
        stop = run.unused(run.inputs)
    return _result(run, stop, at, keep)


def after(snapshot: Snapshot, forecast: Forecast, n: int = -1) -> Snapshot:
    """The snapshot as it would be after that call: slots freed, gradients present, the rest unchanged.

    Parameters
    ----------
    snapshot
        The snapshot that the forecast was made for.
    n
        Number of the call, for `slot_freed_by`.
    """
    state = bytearray(snapshot.slot_state)
    freed_by = snapshot.slot_freed_by[:]
    for slots in forecast.frees.values():
        for saved in slots:
            state[saved.slot] = SlotState.FREED
            freed_by[saved.slot] = n
    if forecast.writes or forecast.may_write:
        for slot, storage in enumerate(snapshot.slot_storage):
            if state[slot] == SlotState.HELD and storage in forecast.writes:
                state[slot] = SlotState.STALE
            elif state[slot] == SlotState.HELD and storage in forecast.may_write:
                state[slot] = SlotState.UNKNOWN
    leaves = dict(snapshot.leaves)
    for node in forecast.reaches:
        if node.leaf and not node.leaf.has_grad:
            leaves[node.index] = replace(node.leaf, has_grad=True)
    facts = dict(snapshot.facts)
    if forecast.releases:
        for node in forecast.executes:
            known = facts.get(node.index, NodeFacts(inner_stale=None))
            nothing_shown = node.kind == Kind.COPY_SLICES or (node.kind == Kind.CUSTOM and not node.saved)
            if nothing_shown or known.hides_saved:
                facts[node.index] = replace(known, released=True)
    return replace(snapshot, slot_state=state, slot_freed_by=freed_by, leaves=leaves, facts=facts)


def afterwards(snapshot: Snapshot, forecast_: Forecast) -> tuple[tuple[TensorRef, Forecast], ...]:
    """What `backward()` on each root of the snapshot would do once the call of the forecast has run."""
    then = after(snapshot, forecast_)
    return tuple((root, forecast(then, [root], grad_given=True)) for root in snapshot.roots)


def _refused_at_once(
    roots: Sequence[TensorRef], inputs: Sequence[TensorRef] | None, grad_given: bool
) -> Forecast | None:
    """The checks before the engine starts, in torch's order. A call that fails here has done nothing."""
    if not grad_given:
        for root in roots:
            if root.requires_grad and (root.numel != 1 or "complex" in root.dtype):
                return Forecast(False, "not_scalar", why=f"{called(root)} is not a scalar and no gradient is given")
    for what, tensors in (("", roots), ("input ", inputs or ())):
        for tensor in tensors:
            if not tensor.requires_grad:
                return Forecast(False, "no_grad", why=f"{what}{called(tensor)} does not require grad")
            if tensor.problem == "no_grad_view" and what:
                continue  # an input is just not part of the graph
            if tensor.problem and tensor.problem.startswith("no_grad_view"):
                return Forecast(False, "no_grad", why=f"{what}{called(tensor)} is a view that was made under no_grad")
            if tensor.problem == "view_modified":
                why = (
                    f"the memory of {what}{called(tensor)}, one of several views that one operation made, was modified"
                )
                return Forecast(False, "inplace", why=f"{why} in place: torch refuses any use of it")
            if tensor.problem:
                return Forecast(None, why=f"the history of {what}{called(tensor)} cannot be read")
    return None


def _result(run: Run, stop: Stop | None, at: int, keep: bool) -> Forecast:
    snapshot = run.snapshot
    node = snapshot.node(at) if at >= 0 else None
    frees = {} if keep else _released(snapshot, run.executed)
    freed, returned = _bytes(snapshot, {saved.slot for slots in frees.values() for saved in slots})
    failed = stop is not None and stop.reason is not None
    unknown = stop is not None and stop.reason is None
    return Forecast(
        ok=None if unknown else not failed,
        reason=stop.reason if stop else None,
        fails_at=node if failed else None,
        fails_slot=SavedTensor(snapshot, stop.slot) if failed and stop and stop.slot >= 0 else None,
        unknown_at=node if unknown else None,
        why=stop.why if stop else "",
        assumes=tuple(run.rules.assumes),
        executes=tuple(map(snapshot.node, run.executed)),
        frees=frees,
        freed_bytes=freed,
        returned_bytes=returned,
        # Gradients returned by autograd.grad change no leaf.
        reaches=tuple(map(snapshot.node, run.reached)),
        releases=not keep,
        writes=run.rules.written(surely=True),
        may_write=run.rules.written(surely=False),
    )


def _released(snapshot: Snapshot, executed: Iterable[int]) -> Mapping[Node, tuple[SavedTensor, ...]]:
    """The saved tensors that the executed nodes release."""
    states, start = snapshot.slot_state, snapshot.slot_start
    found = {}
    for node in executed:
        slots = tuple(SavedTensor(snapshot, s) for s in range(start[node], start[node + 1]) if KEEPS_MEMORY[states[s]])
        if slots:
            found[snapshot.node(node)] = slots
    return found


def _bytes(snapshot: Snapshot, slots: set[int]) -> tuple[int, int]:
    """(bytes behind `slots`, once per storage; those of them that are freed, since nothing else owns the storage)."""
    unowned = sum(snapshot.slot_bytes[slot] for slot in slots if snapshot.slot_storage[slot] < 0)
    mine = {snapshot.slot_storage[slot] for slot in slots} - {-1}
    kept = {leaf.grad_storage for leaf in snapshot.leaves.values()} if mine else set()
    if mine and len(slots) < len(snapshot.slot_state):
        for slot, (state, storage) in enumerate(zip(snapshot.slot_state, snapshot.slot_storage, strict=True)):
            if storage in mine and KEEPS_MEMORY[state] and slot not in slots:
                kept.add(storage)
    storages = snapshot.storages
    freed = sum(storages.bytes[i] for i in mine)
    returned = sum(storages.bytes[i] for i in mine if i not in kept and i not in storages.owners)
    return unowned + freed, unowned + returned
