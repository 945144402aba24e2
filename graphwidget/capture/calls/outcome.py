"""The outcome of a backward call: the nodes that ran, the failed node, the freeing call, the carriers.

Pure functions on the snapshots before and after the call, its forecast and torch's message. Torch is right: if the
forecast was wrong, the outcome contains only facts that the snapshots show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from graphwidget.capture.graph.freed import Freed
from graphwidget.model import (
    KEEPS_MEMORY,
    Forecast,
    Kind,
    Node,
    NodeFacts,
    SlotState,
    Snapshot,
    in_order,
    torch_messages,
)


@dataclass(frozen=True)
class Outcome:
    """How a call ended.

    Attributes
    ----------
    before
        The graph before it.
    forecast
        The forecast; None: there is none.
    text
        The error's message; None: the call succeeded.
    agreed
        Whether the forecast was right.
    executed
        Indices of the nodes that ran.
    """

    before: Snapshot
    forecast: Forecast | None
    text: str | None
    agreed: bool
    executed: Sequence[int]


def boundary(graph: Snapshot, old: set[int]) -> tuple[tuple[int, ...], set[int]]:
    """Return the indices of the old nodes that new nodes lead into, and of all new nodes.

    `old` are uids. The search starts at the roots and stops at old nodes.
    """
    border: set[int] = set()
    seen: set[int] = set()
    stack = [root.node for root in graph.roots if root.node >= 0]
    while stack:
        index = stack.pop()
        if index in seen:
            continue
        seen.add(index)
        if graph.kind[index] == Kind.ACCUMULATE:
            continue
        if graph.uid[index] in old:
            border.add(index)
        else:
            stack.extend(graph.next(index))
    return tuple(sorted(border)), seen - border


def carriers(border: set[int], above: set[int], then: dict[str, int], now: dict[str, int]) -> tuple[str, ...]:
    """Return the paths that held a border node (by sequence number) when it was freed, and still hold it.

    If no path still holds one, return the paths that did then, whose variables have been reassigned since. If only
    locals of a function that has returned held one, return the paths that hold it now. If no path ever held a border
    node, return the paths that held a node `above` it: a tensor computed before the freeing call, which that call did
    not visit.
    """
    held_then = {path for path, number in then.items() if number in border}
    held_now = {path for path, number in now.items() if number in border}
    still = {path for path in held_now & held_then if now[path] == then[path]}
    if not (held_then or held_now):
        held_then = {path for path, number in then.items() if number in above}
        still = {path for path in held_then if now.get(path) == then[path]}
    if still:
        return in_order(still)
    fresh = held_now - held_then
    if fresh and all(":" in path for path in held_then):
        return in_order(fresh)
    return in_order(held_then)


def agrees(forecast: Forecast, text: str | None) -> bool:
    """Whether the forecast of a call was right. `text` is the error's message."""
    if text is None:
        return forecast.ok is True
    if forecast.reason == "raises":  # user code raises it, with any message
        return True
    return forecast.ok is False and torch_messages.says(text, torch_messages.FORECAST.get(str(forecast.reason), ()))


def executed_nodes(before: Snapshot, forecast: Forecast | None, later: Snapshot | None, everything: bool) -> list[int]:
    """Return the indices of the nodes that ran, in engine order if the forecast knew it."""
    if forecast is not None:
        return [node.index for node in forecast.executes]
    if everything:
        return below(before)
    return newly_freed(before, later) if later is not None else []


def below(graph: Snapshot) -> list[int]:
    """Return the indices of the nodes that the roots reach. A graph also has nodes that only names reach."""
    found = dict.fromkeys(root.node for root in graph.roots if root.node >= 0)
    stack = list(found)
    while stack:
        for after in graph.next(stack.pop()):
            if after not in found:
                found[after] = None
                stack.append(after)
    return list(found)


def newly_freed(before: Snapshot, later: Snapshot) -> list[int]:
    """Return the indices of the nodes that held saved tensors before the call and no longer do."""
    found = []
    for index in range(len(before)):
        after = later.index_of.get(before.uid[index])
        if after is None:
            continue
        slots, slots_after = before.slots_of(index), later.slots_of(after)
        if (_holds_hidden(before, index) and _released(later, after)) or any(
            KEEPS_MEMORY[before.slot_state[a]] and later.slot_state[b] == SlotState.FREED
            for a, b in zip(slots, slots_after, strict=False)
        ):
            found.append(index)
    return found


def _holds_hidden(snapshot: Snapshot, index: int) -> bool:
    """Whether a node is an in-place write into a view that no call has released."""
    facts = snapshot.facts.get(index)
    return snapshot.kind[index] == Kind.COPY_SLICES and facts is not None and facts.released is False


def _released(snapshot: Snapshot, index: int) -> bool:
    facts = snapshot.facts.get(index)
    return facts is not None and facts.released is True


def before_it_raised(after: Snapshot, sure_from: int) -> Snapshot:
    """Return the graph before a call that raised and kept nothing, as far as the graph after it shows.

    What is freed and was freed by no earlier call, the call itself has freed before it raised. `sure_from`: from this
    sequence number on, it is known which nodes earlier calls freed.
    """
    state = bytearray(after.slot_state)
    for index, number in enumerate(after.seq):
        for s in after.slots_of(index) if number >= sure_from else ():
            if state[s] == SlotState.FREED and after.slot_freed_by[s] < 0:
                state[s] = SlotState.HELD
    return replace(after, slot_state=state)


def same_freed(before: Snapshot, later: Snapshot, executed: Sequence[int]) -> bool:
    """Whether exactly the nodes that ran have lost their saved tensors."""
    holding = {
        i
        for i in executed
        if _holds_hidden(before, i) or any(KEEPS_MEMORY[before.slot_state[s]] for s in before.slots_of(i))
    }
    return holding == set(newly_freed(before, later))


def with_later_facts(before: Snapshot, later: Snapshot) -> Snapshot:
    """Return the graph before a call, with the facts that are known since about its in-place writes into views.

    The call released the writes that it ran, so nothing was wrong with them. `later` has the facts about the others.
    """
    facts = dict(before.facts)
    for index, fact in before.facts.items():
        at = later.index_of.get(before.uid[index])
        if before.kind[index] != Kind.COPY_SLICES or at is None or at not in later.facts:
            continue
        if fact.released is False and _released(later, at):
            facts[index] = replace(fact, inner_stale=False)
        elif later.facts[at].inner_stale is not None:
            facts[index] = replace(fact, inner_stale=later.facts[at].inner_stale)
    return replace(before, facts=facts)


def as_it_ended(
    before: Snapshot,
    later: Snapshot,
    forecast: Callable[[Snapshot], Forecast | None],
    text: str,
    keeps: bool,
    guess: bool,
) -> Outcome | None:
    """Return the outcome of a call that raised by a forecast that ends as the call did; None: there is none.

    Its graph has the facts that are known since. No forecast passes Python code that may change the graph, a hook or a
    Function's backward that writes in place. The call did: a second forecast takes it that this code changed nothing.

    Parameters
    ----------
    keeps
        The call keeps what its nodes saved, so that nothing shows which have run: then the second forecast must meet a
        tensor of the shape in torch's message.
    guess
        Whether a second forecast is made.
    """
    better = with_later_facts(before, later)
    for graph in (better, _without_effects(better)) if guess else (better,):
        found = forecast(graph)
        if found is None or not agrees(found, text):
            continue
        slot, executed = found.fails_slot, [node.index for node in found.executes]
        if not keeps:
            fits = same_freed(graph, later, executed)
        else:
            fits = graph is better or (slot is not None and slot.shape == torch_messages.shape_of_modified(text))
        if fits:
            return Outcome(better, found, text, True, executed)
    return None


def _without_effects(graph: Snapshot) -> Snapshot:
    """The graph as if the Python code behind its nodes did nothing to it, unless it surely raises."""

    def left(effect: str) -> str:
        return effect if effect.startswith("raises") else ""

    facts = {
        i: replace(fact, effect=left(fact.effect), hook_effect=left(fact.hook_effect))
        for i, fact in graph.facts.items()
    }
    return replace(graph, facts=facts)


def failed_node(before: Snapshot, forecast: Forecast | None, text: str | None) -> int | None:
    """Return the index of the node at which the call failed; None if unknown, or if it failed before any node ran."""
    if text is None:
        return None
    if forecast is not None:
        node: Node | None = forecast.fails_at
        return node.index if node is not None else None
    wanted = None
    if torch_messages.says(text, torch_messages.FREED):
        wanted = SlotState.FREED
    elif torch_messages.says(text, torch_messages.MODIFIED):
        wanted = SlotState.STALE
    if wanted is None or any(kind in (Kind.CUSTOM, Kind.COMPILED) for kind in before.kind):
        return None
    found = [i for i in range(len(before)) if _may_hold(before, i, wanted)]
    return found[0] if len(found) == 1 else None


def stopped_at(before: Snapshot, forecast: Forecast | None, executed: Sequence[int]) -> tuple[int, ...]:
    """Return the indices of the nodes one of which raised, in a call that was to run; empty: they cannot be told.

    The nodes run in the order of the forecast, and each that has run has released what it saved. So the one that
    raised stands between the last that has released something and the first that still holds something.
    """
    if forecast is None or not forecast.ok or not forecast.releases:
        return ()
    ran, found = set(executed), list[int]()
    for node in forecast.executes:
        index = node.index
        if index in ran:
            found = []
            continue
        found.append(index)
        if _holds_hidden(before, index) or any(KEEPS_MEMORY[before.slot_state[s]] for s in before.slots_of(index)):
            return tuple(found)
    return tuple(found)


def _may_hold(snapshot: Snapshot, index: int, state: SlotState) -> bool:
    """Whether a node has a slot in this state, or is an in-place write into a view that may hide one."""
    if snapshot.kind[index] != Kind.COPY_SLICES:
        return any(snapshot.slot_state[s] == state for s in snapshot.slots_of(index))
    facts = snapshot.facts.get(index) or NodeFacts()
    if state == SlotState.FREED:
        return facts.released is not False
    return facts.released is not True and facts.inner_stale is not False


def only_one(before: Snapshot, freed: Freed) -> int | None:
    """Return n of the call that freed all the freed nodes of this graph; None if there were several calls."""
    found = {n for node in zip(before.uid, before.seq, strict=True) if (n := freed.of(*node)) is not None}
    return found.pop() if len(found) == 1 else None


def bytes_behind(snapshot: Snapshot, slots: Sequence[int]) -> int:
    """Return the bytes behind some slots; each storage counts once."""
    storages = {snapshot.slot_storage[s] for s in slots} - {-1}
    loose = sum(snapshot.slot_bytes[s] for s in slots if snapshot.slot_storage[s] < 0)
    return loose + sum(snapshot.storages.bytes[at] for at in storages)


def afterwards(before: Snapshot, executed: Sequence[int], n: int | None) -> Snapshot:
    """Return the graph after the call. `n` None: the call freed nothing."""
    if n is None:
        return before
    state, freed_by, facts = bytearray(before.slot_state), before.slot_freed_by[:], dict(before.facts)
    for i in executed:
        if _holds_hidden(before, i):
            facts[i] = replace(facts[i], released=True)
        for s in before.slots_of(i):
            if KEEPS_MEMORY[state[s]]:
                state[s], freed_by[s] = SlotState.FREED, n
    return replace(before, slot_state=state, slot_freed_by=freed_by, facts=facts)


def with_grads(graph: Snapshot, grads: Mapping[int, bool]) -> Snapshot:
    """Return the graph with updated leaves: `grads` maps the uid of a leaf's node to whether it has a `.grad`."""
    changed = {
        at: replace(leaf, has_grad=has_grad, grad_storage=leaf.grad_storage if has_grad else -1)
        for at, leaf in graph.leaves.items()
        if (has_grad := grads.get(graph.uid[at], leaf.has_grad)) != leaf.has_grad
    }
    return replace(graph, leaves={**graph.leaves, **changed}) if changed else graph
