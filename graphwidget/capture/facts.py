"""What only some nodes have and only the engine's simulation needs: `model.NodeFacts`, read off live objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphwidget.model import Kind, NodeFacts

from . import inplace
from . import torch_internals as ti
from .python_code import Reading, materializes_grads, read_backward, read_function
from .slots import SlotColumns, Tables

__all__ = ["Facts"]

# By kind: whether the nodes have something to tell. A table, because comparing enums is slow in long columns.
_SPECIAL = bytes(kind in (Kind.CUSTOM, Kind.COPY_SLICES, Kind.COMPILED) for kind in Kind)


class Facts:
    """Collects the facts of one walk.

    Parameters
    ----------
    tables, columns
        The storages and slots of the snapshot.
    variables
        Node index -> leaf tensor.
    freed_by
        uid -> n of the call that freed it; None: nobody has watched.
    watched_from
        Sequence number at which the watching began.
    refuses_inputs
        A call in progress uses `inputs=`.
    """

    def __init__(
        self,
        tables: Tables,
        columns: SlotColumns,
        variables: Mapping[int, Any],
        freed_by: Mapping[int, int] | None,
        watched_from: int,
        refuses_inputs: bool,
    ) -> None:
        self.tables = tables
        self.columns = columns
        self.variables = variables
        self.freed_by = freed_by
        self.watched_from = watched_from
        self.refuses_inputs = refuses_inputs
        self.found: dict[int, dict[str, Any]] = {}
        self.hooks: dict[int, dict[int, Reading]] = {}  # node -> key of the hook -> what it was read to do
        self.frames: dict[int, int] = {}  # checkpoint frame -> its number

    def _of(self, index: int) -> dict[str, Any]:
        return self.found.setdefault(index, {})

    def count_hooks(self, index: int, tensor: Any) -> None:
        """Hooks that the tensor with this history says it has."""
        found = self.hooks.setdefault(index, {})
        for key, hook in ti.hooks_of(tensor).items():
            found[key] = read_function(hook)

    def doubt_leaf(self, index: int) -> None:
        """A leaf that is a view whose base was modified since: only rebuilding its history would tell what it is."""
        self._of(index)["effect"] = "may be no leaf any more"

    def read(
        self,
        nodes: Sequence[Any],
        kinds: bytearray,
        numbers: Sequence[int],
        uids: Sequence[int],
        edge_start: Sequence[int],
        edge_to: Sequence[int],
    ) -> dict[int, NodeFacts]:
        """The facts of all nodes that have any."""
        for index, name in self.columns.detached.items():
            self._of(index)["detached_slot"] = name
        for index in self.columns.empty_after_release:
            self._of(index)["released"] = True
        for index in [index for index, kind in enumerate(kinds) if _SPECIAL[kind]]:
            try:
                if kinds[index] == Kind.COPY_SLICES:
                    self._copy_slices(index, nodes[index], numbers[index], uids[index])
                else:
                    self._custom(index, nodes[index])
            except Exception:
                self._of(index).setdefault("effect", "could not be read")
        noted = inplace.numbers_with_hooks()
        if noted:
            for index in [index for index, number in enumerate(numbers) if number in noted and index < len(nodes)]:
                self.hooks.setdefault(index, {}).update(inplace.hooks_on_node(nodes[index]))
        for index, unpack_hooks in self.columns.packed.items():
            try:
                self._packed(index, unpack_hooks)
            except Exception:
                self._of(index).setdefault("effect", "could not be read")
        for index, hooks in self.hooks.items():
            if hooks:
                self._of(index).update(
                    hooks=len(hooks),
                    hooks_plain=sum(reading.plain for reading in hooks.values()),
                    hook_effect=next((reading.effect for reading in hooks.values() if reading.effect), ""),
                )
        return {index: NodeFacts(**entry) for index, entry in self.found.items()}

    def _copy_slices(self, index: int, node: Any, number: int, uid: int) -> None:
        """Its inner node is invisible from Python: only what was written down when things happened is known."""
        entry = self._of(index)
        write = inplace.write_of(node)
        released: bool | None = None
        if (write is not None and write.released) or (self.freed_by is not None and uid in self.freed_by):
            released = True
        elif self.freed_by is not None and (write is not None or number >= self.watched_from):
            released = False
        entry.update(released=released, inner_stale=None)
        if write is not None:
            entry.update(overlap=write.overlap, inner_stale=write.stale)
            entry["operands"] = self._indices(write.storages)

    def _custom(self, index: int, node: Any) -> None:
        entry = self._of(index)
        forward = getattr(type(node), "_forward_cls", None)
        entry["class_name"] = getattr(forward, "__qualname__", type(node).__name__)
        if forward is None:
            return
        if ti.is_reentrant_checkpoint(forward):
            entry.update(reentrant_checkpoint=True, reads_saved=True, refuses_inputs=self.refuses_inputs)
            self._recomputes(entry, node.run_function, _saved(node), nested=True)
            return
        reading = read_backward(forward)
        entry.update(
            plain=reading.plain,
            effect=reading.effect,
            reads_saved=reading.reads_saved,
            materialize_grads=materializes_grads(forward),
            returns=_per_edge(reading, [edge is not None for edge, _ in node.next_functions]),
        )

    def _packed(self, index: int, unpack_hooks: Sequence[Any]) -> None:
        """Slots behind a saved-tensor hook: a checkpoint's frame, or Python that unpacks."""
        entry = self._of(index)
        for hook in unpack_hooks:
            frame = ti.checkpoint_frame(hook)
            if frame is None:
                reading = read_function(hook)
                entry["unpack_plain"] = entry.get("unpack_plain", True) and reading.plain
                if reading.effect:
                    entry["effect"] = reading.effect
            elif "checkpoint" not in entry:
                entry.update(
                    non_reentrant_checkpoint=True, checkpoint=self.frames.setdefault(id(frame), len(self.frames))
                )
                saved = [argument for argument in frame.saved_args if hasattr(argument, "unpack_hook")]
                self._recomputes(entry, ti.checkpointed_function(frame), saved, nested=False)
                entry["unpack_plain"] = entry.pop("plain")

    def _recomputes(self, entry: dict[str, Any], function: Any, arguments: Sequence[Any], nested: bool) -> None:
        """What running a checkpointed function again would meet."""
        reading = read_function(function)
        entry.update(plain=reading.plain, effect=reading.effect)
        around = ti.tensors_around(function)
        if nested and any(ti.requires_grad(t) and (ti.is_view(t) or not ti.is_leaf(t)) for t in around):
            entry["effect"] = "uses a tensor with a history of its own, whose graph it would run as well"
        held = [argument.data for argument in arguments if argument.unpack_hook is None and argument.data is not None]
        leaves = {id(variable) for variable in self.variables.values()}
        if any(_lost_grad(tensor, leaves) for tensor in (*held, *around)):
            entry["argument_state"] = "frozen"
        for argument in () if nested else arguments:  # a re-entrant one's arguments are slots of the node
            if argument.unpack_hook is None and argument.data is not None:
                # Unpacking may rebuild a view's history: not unless the engine is about to do the same.
                doubtful = ti.maybe_stale_view(argument.data) and not self.columns.settle
                state = "unknown" if doubtful else ti.state_of_argument(argument)
                if state != "ok":
                    entry["argument_state"] = state
                    break
        if nested:
            grads = [ti.leaf_and_grad(t)[1] for t in around if ti.requires_grad(t) and not ti.is_view(t)]
            found = [ti.storage_of(grad) for grad in grads if grad is not None]
            entry["nested_grads"] = self._indices([key for key, _ in filter(None, found)])
        found = [ti.storage_of(tensor) for tensor in held]
        entry["operands"] = () if nested else self._indices([key for key, _ in filter(None, found)])

    def _indices(self, keys: Sequence[int]) -> tuple[int, ...]:
        storages = self.tables.storages
        return tuple(storages[key] for key in keys if key in storages)


def _saved(node: Any) -> list[Any]:
    try:
        return list(ti.saved_by_custom(node) or ())
    except RuntimeError:
        return []


def _lost_grad(tensor: Any, leaves: set[int]) -> bool:
    """Whether a tensor that needs no gradient now needed one before, so that recomputing saves other tensors."""
    if not ti.is_tensor(tensor) or ti.requires_grad(tensor) or not tensor.is_floating_point():
        return False
    return id(tensor) in leaves or inplace.was_frozen(tensor)


def _per_edge(reading: Reading, there: Sequence[bool]) -> tuple[bool | None, ...]:
    """For each edge, whether the gradient that the backward returns for it is a tensor.

    `there` says for each tensor argument whether it has an edge. Arguments that are no tensors have neither, and
    their gradient is None.
    """
    returns = reading.returns
    edges = sum(there)
    if returns is None:
        return ()
    if len(returns) == len(there):
        return tuple(value for value, edge in zip(returns, there, strict=True) if edge)
    if len(set(returns)) == 1:
        return (returns[0],) * edges
    tensors = [value for value in returns if value is not False]
    return tuple(tensors) if len(tensors) == edges else ()
