"""The roots of a snapshot: the tensors that a backward can be called on, with their names in user code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphwidget import torch_internals as ti
from graphwidget.capture.owners.search import Search
from graphwidget.capture.owners.starting_points import LAST_RESULT
from graphwidget.model import Kind, Snapshot, TensorRef

__all__ = ["find_roots"]

_IN_TRACEBACK = ("sys.last_", f"{LAST_RESULT}.error")
_ENGINE_LOCALS = ("self", "tensors", "outputs", "t_outputs", "args")  # of torch's own frames around the engine


def find_roots(snapshot: Snapshot, search: Search, called: Mapping[int, str | None]) -> tuple[TensorRef, ...]:
    """Find the named tensors that no other named tensor was computed from, and the roots of earlier calls.

    `called` maps the uid of a called root to the name it had at the call.
    """
    built_on = {owner.node for owner in snapshot.owners}.intersection(snapshot.edge_to)
    tensors = {holding.path: holding.tensor for holding in search.holdings}
    found: dict[tuple[int, int], list[str]] = {}
    for owner in snapshot.owners:
        if owner.node not in built_on or snapshot.uid[owner.node] in called:
            found.setdefault((owner.node, owner.output_nr), []).append(owner.path)
    roots = []
    for (node, number), paths in found.items():
        tensor = tensors.get(paths[0])
        if tensor is not None and snapshot.kind[node] != Kind.ACCUMULATE:
            ref = TensorRef(node, number, tuple(paths), ti.shape_of(tensor), ti.dtype_name(tensor), ti.count_of(tensor))
            lost = all(path.startswith(_IN_TRACEBACK) for path in paths)
            roots.append(replace(ref, known_as=_known_as(paths[0], called.get(snapshot.uid[node]))) if lost else ref)
    return tuple(roots)


def _known_as(path: str, then: str | None) -> str:
    """Return the user's name of a tensor that only a traceback keeps: its name at a call, or the local variable."""
    local = (then or path).rsplit(":", 1)[-1].strip()
    return "a tensor" if local.split("[", 1)[0] in _ENGINE_LOCALS else local
