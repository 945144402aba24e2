"""Random snapshots for the tests of memory: nodes in topological order, roots first."""

from __future__ import annotations

from array import array

from hypothesis import strategies as st

from graphwidget.model import Kind, Owner, SlotState, Snapshot, Storage, TensorRef

PATHS = ("y", "temp[0]", "temp[1]", "model.h", "Out[3]", "step:act", "x.grad", "d['k'][0]")


def snapshot(edges, owners=(), slots=(), storages=(), roots=(), ghosts=()):
    """`edges[i]`: successors of node i; `slots[i]`: (state, storage) pairs; `owners`: (path, node)."""
    n = len(edges)
    shot = Snapshot(
        uid=array("q", [100 + i for i in range(n)]),
        name=array("i", range(n)),
        names=tuple(f"Node{i}" for i in range(n)),
        seq=array("q", range(n, 0, -1)),
        kind=bytearray([Kind.FUNCTION] * n),
        ghost=bytearray(i in ghosts for i in range(n)),
        slot_names=("self",),
        storages=tuple(storages),
        owners=tuple(Owner(path, node, 0, "grad" if path.endswith(".grad") else "variable") for path, node in owners),
        roots=tuple(TensorRef(node) for node in roots),
    )
    for targets in edges:
        shot.edge_to.extend(targets)
        shot.edge_nr.extend([0] * len(targets))
        shot.edge_start.append(len(shot.edge_to))
    for i in range(n):
        for state, storage in slots[i] if slots else ():
            shot.slot_name.append(0)
            shot.slot_state.append(state)
            shot.slot_storage.append(storage)
            shot.slot_bytes.append(7)
        shot.slot_start.append(len(shot.slot_state))
    return shot


@st.composite
def graphs(draw, size=12):
    """A random acyclic snapshot with owners, slots that share storages, and storages that variables share."""
    n = draw(st.integers(1, size))
    edges = [draw(st.lists(st.integers(i + 1, n - 1), max_size=3)) if i < n - 1 else [] for i in range(n)]
    paths = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=6))
    owners = [(path, draw(st.integers(0, n - 1))) for path in paths]
    count = draw(st.integers(0, 4))
    storages = [
        Storage(i, 2**i * 8, owners=tuple(draw(st.lists(st.sampled_from((*PATHS, "data")), unique=True, max_size=2))))
        for i in range(count)
    ]
    state = st.sampled_from([SlotState.HELD, SlotState.FREED, SlotState.STALE])
    slots = [draw(st.lists(st.tuples(state, st.integers(-1, count - 1)), max_size=2)) for _ in range(n)]
    roots = draw(st.lists(st.integers(0, n - 1), max_size=3))
    return snapshot(edges, owners, slots, storages, roots)
