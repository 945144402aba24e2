"""Who keeps which bytes: the memory of saved tensors, divided among the names that lead to it.

A saved tensor is kept by every name whose graph reaches its node. What only one name reaches is that name's; what
several reach is counted once, for all of them together, so that the parts add up to the bytes held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

from graphwidget.engine.memory import topological, variable_of
from graphwidget.model import KEEPS_MEMORY, Kind, Snapshot

__all__ = ["NOBODY", "OTHERS", "SEVERAL", "bands", "keepers"]

NOBODY = "no name found"
SEVERAL = "several names"
OTHERS = "other names"
MAX_NODES = 200_000  # larger graphs are not divided: it would take too long
_MOST_NAMES = 3  # that are listed for bytes which several names keep

_cache: WeakKeyDictionary[Snapshot, dict[str, int]] = WeakKeyDictionary()


def keepers(snapshot: Snapshot) -> Mapping[str, int] | None:
    """Name, or names joined by commas -> bytes of saved tensors that only they keep; None: the graph is too large."""
    if len(snapshot) > MAX_NODES:
        return None
    found = _cache.get(snapshot)
    if found is None:
        found = _cache[snapshot] = _divided(snapshot)
    return found


def _divided(snapshot: Snapshot) -> dict[str, int]:
    names = {
        node: paths[0] for node, paths in snapshot.labels.items() if snapshot.kind[node] != Kind.ACCUMULATE and paths
    }
    reached = _reached(snapshot, names)
    of_storage: dict[int, frozenset[str]] = {}
    held: dict[frozenset[str], int] = {}
    for node in range(len(snapshot)):
        for slot in snapshot.slots_of(node):
            if not KEEPS_MEMORY[snapshot.slot_state[slot]]:
                continue
            storage = snapshot.slot_storage[slot]
            if storage < 0:
                held[reached[node]] = held.get(reached[node], 0) + snapshot.slot_bytes[slot]
            else:
                of_storage[storage] = of_storage.get(storage, frozenset()) | reached[node]
    for storage, who in of_storage.items():
        held[who] = held.get(who, 0) + snapshot.storages.bytes[storage]
    bytes_of: dict[str, int] = {}
    for who, count in held.items():
        name = _label(who, names.values())
        bytes_of[name] = bytes_of.get(name, 0) + count
    return bytes_of


def _reached(snapshot: Snapshot, names: Mapping[int, str]) -> list[frozenset[str]]:
    """For each node the names whose graphs contain it."""
    nothing: frozenset[str] = frozenset()
    reached = [nothing] * len(snapshot)
    own = {node: frozenset([name]) for node, name in names.items()}
    for node in topological(snapshot, range(len(snapshot))):
        if node in own:
            reached[node] |= own[node]
        mine = reached[node]
        for following in snapshot.next(node):
            theirs = reached[following]
            if theirs is not mine:
                reached[following] = mine | theirs if theirs else mine
    return reached


def _label(who: frozenset[str], order: Iterable[str]) -> str:
    if not who:
        return NOBODY
    if len(who) > _MOST_NAMES:
        return SEVERAL
    return ", ".join(dict.fromkeys(name for name in order if name in who))


def bands(moments: Sequence[Mapping[str, int]], most: int = 12) -> tuple[tuple[str, ...], list[list[int]]]:
    """Names, and for each moment the bytes of each name: at most so many names.

    Where there are too many, first all that several names keep becomes one, then the elements of a container
    (``history[…]``), then the smallest.
    """
    names = dict.fromkeys(name for moment in moments for name in moment)
    called = {name: name for name in names}
    for shorter in (_one_for_all, _variable):
        if len(set(called.values())) > most:
            called = {name: shorter(label) for name, label in called.items()}
    if len(set(called.values())) > most:
        kept = _largest(moments, called, most - 1)
        called = {name: label if label in kept else OTHERS for name, label in called.items()}
    shown = tuple(sorted(dict.fromkeys(called.values()), key=_is_no_single_name))
    return shown, [[row.get(name, 0) for name in shown] for row in (_renamed(moment, called) for moment in moments)]


def _is_no_single_name(name: str) -> bool:
    """These lie on top of the others, so that a name stays where it is when they come and go."""
    return "," in name or name in (SEVERAL, NOBODY, OTHERS)


def _renamed(moment: Mapping[str, int], called: Mapping[str, str]) -> dict[str, int]:
    row: dict[str, int] = {}
    for name, count in moment.items():
        row[called[name]] = row.get(called[name], 0) + count
    return row


def _largest(moments: Iterable[Mapping[str, int]], called: Mapping[str, str], most: int) -> set[str]:
    """The names that kept most at any moment."""
    largest: dict[str, int] = {}
    for moment in moments:
        for name, count in _renamed(moment, called).items():
            largest[name] = max(largest.get(name, 0), count)
    return set(sorted(largest, key=lambda name: -largest[name])[:most])


def _one_for_all(name: str) -> str:
    return SEVERAL if "," in name else name


def _variable(name: str) -> str:
    """``history[…]`` for `history[0]`."""
    if name in (SEVERAL, NOBODY):
        return name
    variable = variable_of(name)
    return variable if variable == name else f"{variable}[…]"
