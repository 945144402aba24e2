"""The autograd graph at one moment, read from live objects into plain columns.

`take` walks `next_functions` from the given tensors and fills one column after the other. It holds the Python wrappers
of the nodes while it runs, and nothing live when it has returned. `taking` does the same in pieces.
"""

from __future__ import annotations

from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.graph import facts as fact_reading
from graphwidget.capture.graph.freed import Freed
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.made_at import place_columns
from graphwidget.capture.graph.outputs import outputs as outputs_of
from graphwidget.capture.graph.pieces import at_once, within
from graphwidget.capture.graph.slots import SlotColumns
from graphwidget.capture.graph.tables import Tables
from graphwidget.capture.graph.walk import Walk, positions
from graphwidget.model import (
    Kind,
    Leaf,
    ModuleCall,
    NodeFacts,
    Owner,
    Place,
    Snapshot,
    Storages,
    TensorRef,
    is_notebooks,
)

__all__ = ["take", "taking"]


def taking(
    roots: Sequence[Any],
    *,
    inputs: Sequence[Any] = (),
    owners: Sequence[Any] = (),
    identity: Identity | None = None,
    places: Any = None,
    slots: bool = True,
    outputs: bool = False,
    freed_by: Freed | Mapping[int, int] | None = None,
    previous: Snapshot | None = None,
    settle: bool = False,
    watched_from: int = 0,
    refuses_inputs: bool = False,
    thorough: bool = False,
    around: Sequence[Any] = (),
) -> Generator[int, None, Snapshot]:
    """Read the graph behind `roots` and `owners`. Changes nothing, keeps nothing alive, does not raise.

    Parameters
    ----------
    roots
        Tensors, or `torch.autograd.graph.GradientEdge`s, that a backward was or might be called on. Their history is
        read even where that makes torch rebuild it (a view modified through its base), as the engine does.
    inputs
        Tensors of `inputs=`; resolved like roots, but no walk starts from them.
    owners
        What keeps nodes alive: objects like `capture.owners.Holding`, the better name of a tensor first. The graph of
        each is part of the snapshot. A view whose history would be rebuilt by reading it is left out, with a note.
    identity
        Assigns uids. Pass the same object every time to get the same uids.
    places
        Where nodes were made: an object with `lookup(numbers, names) -> (place indices, places, module indices,
        modules)`, or with `place_of(number, name)` and `module_of(number, name)`.
    slots
        False leaves the saved tensors out.
    outputs
        True reads the outputs of each operation, too.
    freed_by
        Which call freed a node, as `Freed` or uid -> n, if all calls were watched. None: they were not.
    previous
        An earlier snapshot with the same `identity`: what it proves about a slot is not read again (see `slots`).
    settle
        Unpack even saved views whose history may be rebuilt by that. Only right just before the engine does the same.
    watched_from
        Sequence number at which watching calls began: older nodes may have been freed by an unknown call.
    refuses_inputs
        A call in progress uses `inputs=`, so a re-entrant checkpoint would refuse a call nested in it.
    thorough
        The user asked, and a wait of 100 ms is better than an assumption (see `Facts`).
    around
        Further tensors that the user can reach: their hooks count if their nodes are part of the snapshot.

    Yields
    ------
    int
        How many nodes are still to be read; an `AtLeast` until all have been found. The nodes that the tensors lead to
        are fixed before the first yield. Slots, leaves and hooks are read as they are when the generator is resumed.
        Ending it early (`close`, an interrupt) waits until the nodes found so far are safe to drop.

    Returns
    -------
    Snapshot
        Nodes in order of discovery: roots, owners, breadth first. Leaf roots that torch has made no node for are last.
    """
    who = freed_by if freed_by is None or isinstance(freed_by, Freed) else Freed(freed_by)
    who_is = Identity() if identity is None else identity
    reader = _Reader(who_is, previous, who, settle, watched_from, refuses_inputs, thorough, outputs)
    return (yield from within(_without_side_effects, reader.reading(roots, inputs, owners, slots, around, places)))


take = at_once(taking)


@contextmanager
def _without_side_effects() -> Iterator[None]:
    with ti.quiet(), ti.no_collection():
        yield


class _Seed:
    """A tensor from which the walk starts, and where it leads: a node, or a leaf that has no node yet."""

    __slots__ = ("node", "number", "paths", "problem", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.node: Any = None
        self.number = 0
        self.problem: str | None = None
        self.paths: tuple[str, ...] = ()


class _Reader:
    """One `take`: holds all live objects that it needs, while it runs."""

    def __init__(
        self,
        identity: Identity,
        previous: Snapshot | None,
        freed_by: Freed | None,
        settle: bool,
        watched_from: int,
        refuses_inputs: bool,
        thorough: bool,
        outputs: bool,
    ) -> None:
        self.outputs = outputs
        self.identity = identity
        self.previous = previous
        self.freed_by = freed_by
        self.watched_from = watched_from
        self.refuses_inputs = refuses_inputs
        self.thorough = thorough
        self.tables = Tables()
        self.columns = SlotColumns(self.tables, previous, freed_by or Freed(), settle)
        self.roots: list[_Seed] = []
        self.inputs: list[_Seed] = []
        self.owned: list[tuple[_Seed, Any]] = []
        self.paths: dict[int, list[str]] = {}  # id(tensor) -> paths; the owners keep the tensors alive
        self.names: dict[int, list[str]] = {}  # the same without names of the notebook itself (`Out[3]`)
        self.leaves: dict[int, Leaf] = {}
        self.variables: dict[int, Any] = {}  # node index -> leaf tensor
        self.facts: dict[int, NodeFacts] = {}
        self.lone: dict[int, int] = {}  # id(leaf) -> index of its node, which torch may not have made yet
        self.notes: list[str] = []

    def reading(
        self,
        roots: Sequence[Any],
        inputs: Sequence[Any],
        owners: Sequence[Any],
        slots: bool,
        around: Sequence[Any],
        places: Any,
    ) -> Generator[int, None, Snapshot]:
        """Read everything, in pieces. See `taking`."""
        self.seeds(roots, inputs, owners)
        yield from self.find_nodes()
        yield len(self.walk.nodes)
        if slots:
            yield from self.columns.reading(self.walk)
        else:
            self.columns.skip(len(self.walk.nodes))
        yield 0
        self.read_leaves()
        self.read_facts(around)
        yield 0
        names = tuple(self.walk.names)
        found = place_columns(places, self.walk.seq, list(map(names.__getitem__, self.walk.name)))
        yield 0
        return self.snapshot(*found)

    # ------------------------------------------------------------ the start

    def seeds(self, roots: Sequence[Any], inputs: Sequence[Any], owners: Iterable[Any]) -> None:
        for holding in owners:
            self.paths.setdefault(id(holding.tensor), []).append(holding.path)
            if not is_notebooks(holding.kind, holding.path):
                self.names.setdefault(id(holding.tensor), []).append(holding.path)
        doubtful = []
        for holding in owners:
            seed = self._seed(holding.tensor, asked=False)
            if seed.problem == "stale_view":
                doubtful.append(holding.path)
            self.owned.append((seed, holding))
        self.roots = [self._seed(root, asked=True) for root in roots]
        self.inputs = [self._seed(tensor, asked=True) for tensor in inputs]
        if doubtful:
            some = ", ".join(doubtful[:5]) + (" and others" if len(doubtful) > 5 else "")
            self.notes.append(
                f"not looked at, because looking could change the order of later backward steps: the history of {some} "
                "(views of tensors that were modified in place)"
            )

    def _seed(self, tensor: Any, *, asked: bool) -> _Seed:
        seed = _Seed(tensor)
        if not ti.is_tensor(tensor):
            edge = ti.as_edge(tensor)
            if edge is None:
                seed.problem = "unreadable"
            else:
                seed.node, seed.number = edge
            return seed
        seed.paths = tuple(self.paths.get(id(tensor), ()))
        try:
            seed.node, seed.number, seed.problem = ti.history(tensor, asked=asked)
        except Exception:
            seed.problem = "unreadable"
        return seed

    # ------------------------------------------------------------ the walk

    def find_nodes(self) -> Iterator[int]:
        """Find every node that can be reached. Yields how many are known so far."""
        seeds = [seed.node for seed in (*self.roots, *(seed for seed, _ in self.owned)) if seed.node is not None]
        self.walk = Walk(list(dict.fromkeys(seeds)), self.identity, self.previous)
        return self.walk.finding()

    # ------------------------------------------------------------ leaves

    def read_leaves(self) -> None:
        by_tensor: dict[int, int] = {}
        for i in positions(self.walk.kind, Kind.ACCUMULATE):
            variable = ti.accumulated_variable(self.walk.nodes[i])
            if variable is not None:
                self.variables[i] = variable
                by_tensor[id(variable)] = i
                self.leaves[i] = self._leaf(variable, self.walk.nodes[i])
        for seed in self.roots:
            if (
                seed.node is None
                and seed.problem is None
                and ti.is_tensor(seed.tensor)
                and ti.requires_grad(seed.tensor)
            ):
                self._lone_leaf(seed.tensor, by_tensor)
        self.lone = by_tensor
        self._use_current_accumulators()

    def _use_current_accumulators(self) -> None:
        """Find the current node of each leaf in `inputs=`: after a change of dtype, torch makes a new AccumulateGrad.

        So after `model.double()`, a leaf in `inputs=` is not part of the graph made before. Checked if the dtypes
        differ, and with `thorough` always.
        """
        nodes = self.walk.nodes
        known = {key: at for key, at in self.lone.items() if at < len(nodes)}  # the others have no node yet
        leaves = [seed.tensor for seed in self.inputs if seed.node is None and id(seed.tensor) in known]
        if not self.thorough:
            leaves = [leaf for leaf in leaves if ti.dtype_name(leaf) != ti.dtype_of_input(nodes[known[id(leaf)]])]
        if not leaves:
            return
        for leaf, node in zip(leaves, ti.accumulators_now(leaves), strict=True):
            at = self.walk.at(node) if node is not None else known[id(leaf)]
            self.lone[id(leaf)] = -1 if at is None else at

    def _lone_leaf(self, variable: Any, by_tensor: dict[int, int]) -> None:
        """Add a leaf root that no node leads to: torch makes its AccumulateGrad when the engine needs it."""
        if id(variable) in by_tensor:
            return
        at = by_tensor[id(variable)] = self.walk.add_leaf(variable)
        self.columns.skip(1)
        self.variables[at] = variable
        self.leaves[at] = self._leaf(variable)

    def _leaf(self, variable: Any, node: Any = None) -> Leaf:
        paths = tuple(self.names.get(id(variable), ()))
        try:
            taken, shape = ti.accumulates_shape(node), ti.shape_of(variable)
            is_leaf, gradient = ti.leaf_and_grad(variable, asked=self.columns.settle)
            return Leaf(
                paths=paths,
                shape=shape,
                dtype=ti.dtype_name(variable),
                has_grad=gradient is not None,
                requires_grad=ti.requires_grad(variable),
                is_leaf=is_leaf,
                bytes=ti.bytes_of(variable),
                grad_storage=-1 if gradient is None else self.tables.storage(gradient),
                grad_refuses="" if gradient is None else ti.refuses_writes(gradient),
                reshaped=taken is not None and taken != shape,
                memory=(ti.storage_of(variable) or (-1,))[0],
            )
        except Exception:
            return Leaf(paths=paths, shape=(), dtype="", has_grad=False)

    # ------------------------------------------------------------ facts

    def read_facts(self, around: Sequence[Any]) -> None:
        reading = fact_reading.Facts(
            self.tables,
            self.columns,
            self.variables,
            self.freed_by,
            self.watched_from,
            self.refuses_inputs,
            self.thorough,
        )
        for tensor, at in self._hooked_tensors(around):
            reading.read_hooks(at, tensor)
        for at, variable in self.variables.items():
            if not self.columns.settle and ti.maybe_no_leaf(variable):
                reading.doubt_leaf(at)
        walk = self.walk
        self.facts = reading.read(walk.nodes, walk.kind, walk.seq, walk.uid, walk.edge_start, walk.edge_to)

    def _hooked_tensors(self, around: Sequence[Any]) -> Iterable[tuple[Any, int]]:
        """(tensor, node) of roots, inputs, owners and leaves, and of the tensors `around` that have hooks."""
        seen: set[int] = set()
        for seed in [*self.roots, *self.inputs, *(seed for seed, _ in self.owned)]:
            if seed.node is not None and ti.is_tensor(seed.tensor) and id(seed.tensor) not in seen:
                at = self.walk.at(seed.node)
                if at is not None:
                    seen.add(id(seed.tensor))
                    yield seed.tensor, at
        for at, variable in self.variables.items():
            yield variable, at
        for tensor in around:
            if ti.hooks_of(tensor) and not ti.maybe_stale_view(tensor):
                at = self.walk.at(ti.grad_fn(tensor))
                if at is not None:
                    yield tensor, at

    # ------------------------------------------------------------ the result

    def snapshot(
        self,
        place: array[int],
        place_table: tuple[Place, ...],
        module: array[int],
        module_table: tuple[ModuleCall, ...],
    ) -> Snapshot:
        walk, columns, tables = self.walk, self.columns, self.tables
        output, outputs = outputs_of(walk.nodes) if self.outputs else (array("i"), ())
        for name, count in columns.unreadable.items():
            self.notes.append(f"the saved tensors of {count} {name} could not be read")
        return Snapshot(
            uid=walk.uid,
            name=walk.name,
            seq=walk.seq,
            kind=walk.kind,
            place=place,
            module=module,
            ghost=bytearray(len(walk.uid)),
            edge_start=walk.edge_start,
            edge_to=walk.edge_to,
            edge_nr=walk.edge_nr,
            output=output,
            outputs=outputs,
            slot_start=columns.start,
            slot_name=columns.name,
            slot_state=columns.state,
            slot_dtype=columns.dtype,
            slot_shape=columns.shape,
            slot_bytes=columns.bytes,
            slot_storage=columns.storage,
            slot_freed_by=columns.freed,
            slot_version=columns.version,
            names=tuple(walk.names),
            slot_names=tuple(tables.slot_names),
            dtypes=tuple(tables.dtypes),
            shapes=tuple(map(ti.as_integers, tables.shapes)),
            places=place_table,
            modules=module_table,
            storages=self._storages(),
            leaves=self.leaves,
            facts=self.facts,
            roots=tuple(self._reference(seed) for seed in self.roots),
            inputs=tuple(self._reference(seed) for seed in self.inputs),
            owners=self._owners(),
            notes=tuple(self.notes),
            checks_nan=ti.checks_nan(),
            ranks=ti.ranks(),
        )

    def _storages(self) -> Storages:
        tables = self.tables
        owners: dict[int, list[str]] = {}  # index -> paths
        seen: set[int] = set()
        for _, holding in self.owned:
            if id(holding.tensor) not in seen:
                seen.add(id(holding.tensor))
                found = ti.storage_of(holding.tensor)
                if found is not None and found[0] in tables.storages:
                    owners.setdefault(tables.storages[found[0]], []).extend(self.paths[id(holding.tensor)])
        named = {at: tuple(paths) for at, paths in owners.items()}
        return Storages(tables.storages, tables.storage_bytes, named)

    def _reference(self, seed: _Seed) -> TensorRef:
        tensor = seed.tensor
        at = None if seed.node is None else self.walk.at(seed.node)
        at = -1 if at is None else at
        if not ti.is_tensor(tensor):
            return TensorRef(at, seed.number, problem=seed.problem)
        wants = ti.requires_grad(tensor)
        leaf = seed.node is None and seed.problem is None
        if leaf and wants:
            at = self.lone.get(id(tensor), -1)
        return TensorRef(
            node=at,
            output_nr=seed.number,
            paths=seed.paths,
            shape=ti.shape_of(tensor),
            dtype=ti.dtype_name(tensor),
            numel=ti.count_of(tensor),
            requires_grad=wants,
            is_leaf=leaf,
            problem=seed.problem,
        )

    def _owners(self) -> tuple[Owner, ...]:
        return tuple(
            Owner(holding.path, at, seed.number, holding.kind, holding.containers, holding.bounded, holding.anchor)
            for seed, holding in self.owned
            if seed.node is not None and (at := self.walk.at(seed.node)) is not None
        )
