"""Facts that only some nodes have and only the engine's simulation needs: `model.NodeFacts`, read from live objects."""

from __future__ import annotations

import concurrent.futures.thread
import selectors
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.graph import hidden
from graphwidget.capture.graph.freed import Freed
from graphwidget.capture.graph.slots import SlotColumns
from graphwidget.capture.graph.tables import Tables
from graphwidget.capture.graph.walk import positions
from graphwidget.capture.python import hooks as hook_log
from graphwidget.capture.python.code import WRITES_ARGUMENT, Reading, materializes_grads, read_backward, read_function
from graphwidget.model import Kind, NodeFacts

__all__ = ["Facts"]

MOST_ASKED = 1000  # CopySlices nodes asked in one snapshot; the others stay an assumption

# By kind: whether nodes of that kind can have facts.
_SPECIAL = bytes(kind in (Kind.CUSTOM, Kind.COPY_SLICES, Kind.COMPILED) for kind in range(256))


class Facts:
    """Collects the facts of one walk.

    Parameters
    ----------
    tables, columns
        The storages and slots of the snapshot.
    variables
        Node index -> leaf tensor.
    freed_by
        Which call freed a node; None: calls were not watched.
    watched_from
        Sequence number at which watching began.
    refuses_inputs
        A call in progress uses `inputs=`.
    thorough
        Search all objects of the process for stale views (100 ms), so that fewer facts stay unknown.
    """

    def __init__(
        self,
        tables: Tables,
        columns: SlotColumns,
        variables: Mapping[int, Any],
        freed_by: Freed | None,
        watched_from: int,
        refuses_inputs: bool,
        thorough: bool,
    ) -> None:
        self.tables = tables
        self.columns = columns
        self.variables = variables
        self.freed_by = freed_by
        self.watched_from = watched_from
        self.refuses_inputs = refuses_inputs
        self.thorough = thorough
        self.found: dict[int, dict[str, Any]] = {}
        self.hooks: dict[int, dict[int, Reading]] = {}  # node -> key of the hook -> what its code does
        self.held_grads: tuple[int, ...] | None = None
        self.numbers: Sequence[int] = ()
        self.frames: dict[int, int] = {}  # checkpoint frame -> its number

    def _watched(self, number: int) -> bool:
        """Whether calls have been watched since before the node with this sequence number was made."""
        return self.freed_by is not None and number >= self.watched_from

    def _released(self, number: int, uid: int) -> bool | None:
        """Whether a call released the saved tensors of a node that does not show it. None: unknown."""
        if self.freed_by is not None and self.freed_by.of(uid, number) is not None:
            return True
        return False if self._watched(number) else None

    def _entry(self, index: int) -> dict[str, Any]:
        """The facts of a node found so far. Callers add to them."""
        return self.found.setdefault(index, {})

    def read_hooks(self, index: int, tensor: Any) -> None:
        """Read the hooks of a tensor whose history is node `index`."""
        found = self.hooks.setdefault(index, {})
        for key, hook in ti.hooks_of(tensor).items():
            found[key] = read_function(hook)

    def doubt_leaf(self, index: int) -> None:
        """Record that a leaf is a view of a modified base: only rebuilding its history would show if it is a leaf."""
        self._entry(index)["effect"] = "may be no leaf any more"

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
        self.numbers = numbers
        for index, name in self.columns.detached.items():
            self._entry(index)["detached_slot"] = name
        for index in self.columns.empty_after_release:
            self._entry(index)["released"] = True
        writes = []
        for index in positions(kinds.translate(_SPECIAL), 1):
            if kinds[index] == Kind.COPY_SLICES:
                writes.append(index)
                continue
            try:
                self._read_custom(index, nodes[index])
            except Exception:
                self._entry(index).setdefault("effect", "could not be read")
        hiding = {cls for cls in set(map(type, nodes)) if ti.hides_saved(cls)}
        for index in [index for index, node in enumerate(nodes) if type(node) in hiding] if hiding else ():
            self._entry(index).update(hides_saved=True, released=self._released(numbers[index], uids[index]))
        if writes:
            self._read_copies(nodes, numbers, uids, writes)
        hooked = hook_log.numbers_with_hooks()
        if hooked:
            for index in [index for index, number in enumerate(numbers) if number in hooked and index < len(nodes)]:
                self.hooks.setdefault(index, {}).update(hook_log.hooks_on_node(nodes[index]))
        for index, unpack_hooks in self.columns.packed.items():
            try:
                self._read_unpack_hooks(index, unpack_hooks)
            except Exception:
                self._entry(index).setdefault("effect", "could not be read")
        for index, found in self.hooks.items():
            if found:
                self._entry(index).update(
                    hooks=len(found),
                    hooks_plain=sum(reading.plain for reading in found.values()),
                    hook_effect=next(filter(None, map(_effect_on_the_graph, found.values())), ""),
                )
        return {index: NodeFacts(**entry) for index, entry in self.found.items()}

    def _read_copies(
        self, nodes: Sequence[Any], numbers: Sequence[int], uids: Sequence[int], found: Sequence[int]
    ) -> None:
        """Ask the CopySlices nodes: the node inside them cannot be read."""
        for index in found:
            self._entry(index).update(released=self._released(numbers[index], uids[index]), inner_stale=None)
        # Only a Python function can be stopped before it unpacks, so no hook of another kind may be hidden inside.
        stoppable = not hook_log.unstoppable_unpack_hooks() and all(
            hook_log.is_python(hook) for hooks in self.columns.packed.values() for hook in hooks
        )
        known = {index for index in found if stoppable and self._watched(numbers[index])}
        in_doubt = [] if self.columns.settle else [index for index in found if _has_view_operand(nodes[index])]
        self._ask(nodes, found[:MOST_ASKED], known.difference(in_doubt))
        again = [index for index in in_doubt[:MOST_ASKED] if index in known and self._entry(index)["released"] is False]
        views = self._stale_views() if again else None
        if views is not None:
            with ti.never_rebuilt(views):
                self._ask(nodes, again, again)

    def _ask(self, nodes: Sequence[Any], indices: Sequence[int], unpacks: Collection[int]) -> None:
        answers = hidden.ask([nodes[index] for index in indices], [index in unpacks for index in indices])
        for index, answer in zip(indices, answers, strict=True):
            try:
                self._use_answer(index, nodes[index], answer)
            except Exception:
                self._entry(index).setdefault("effect", "could not be read")

    def _stale_views(self) -> list[Any] | None:
        """Views that asking must not rebuild. None: not searched for, or another thread might meet the mark on them."""
        if not self.thorough or not ti.DETECTS_STALE_VIEWS or _other_threads_active():
            return None
        return [tensor for tensor in ti.tensors_alive() if ti.maybe_stale_view(tensor) and ti.is_ordinary_view(tensor)]

    def _use_answer(self, index: int, node: Any, answer: hidden.Answer) -> None:
        entry = self._entry(index)
        if answer.released is not None:
            entry["released"] = answer.released
        entry.update(inner_stale=answer.stale, overlap=answer.overlaps)
        if answer.detached:
            entry["detached_slot"] = "inside"
        if answer.stale is False:
            entry["operands"] = self._grads_held_elsewhere()
        if answer.hook is not None:
            entry["inner_packed"] = True
            self._read_unpack_hooks(index, [answer.hook])
        if answer.function is not None:
            self._read_custom(index, answer.function)
            returns = _per_edge(read_backward(ti.forward_class(answer.function)), answer.function)
            if returns and node.next_functions[0][0] is not None:
                returns = (True, *returns[1:])  # None as the gradient of the view becomes zeros
            entry["returns"] = returns
            if answer.stale is None:
                entry["effect"] = "was perhaps released through another of its outputs"

    def _grads_held_elsewhere(self) -> tuple[int, ...]:
        """Storages of every `.grad` that is also held outside its leaf: a hidden node may have saved it."""
        if self.held_grads is None:
            grads = [ti.leaf_and_grad(variable)[1] for variable in self.variables.values()]
            held = [grad for grad in grads if grad is not None and ti.is_held_elsewhere(grad)]
            self.held_grads = tuple({at for at in map(self.tables.storage, held) if at >= 0})
        return self.held_grads

    def _read_custom(self, index: int, node: Any) -> None:
        entry = self._entry(index)
        forward = ti.forward_class(node)
        entry["class_name"] = getattr(forward, "__qualname__", type(node).__name__)
        if forward is None:
            return
        if ti.is_reentrant_checkpoint(forward):
            entry.update(reentrant_checkpoint=True, reads_saved=True, refuses_inputs=self.refuses_inputs)
            self._read_checkpoint(index, node.run_function, _saved(node))
            return
        reading = read_backward(forward)
        entry.update(
            plain=reading.plain,
            effect=_effect_on_the_graph(reading) or _wrong_count(reading, ti.number_of_inputs(node)),
            reads_saved=reading.reads_saved,
            materialize_grads=materializes_grads(forward),
            returns=_per_edge(reading, node),
            arguments=ti.arguments_of_custom(node),
        )

    def _read_unpack_hooks(self, index: int, unpack_hooks: Sequence[Any]) -> None:
        """Read the unpack hooks of saved tensors: each belongs to a checkpoint, or is a Python function."""
        entry = self._entry(index)
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
                self._read_checkpoint(index, ti.checkpointed_function(frame), ti.saved_arguments(frame), frame)
                in_context, used_up = ti.recompute_context(frame)
                entry["unpack_plain"] = entry.pop("plain") and not in_context
                if used_up:
                    entry["argument_state"] = "used"

    def _read_checkpoint(self, index: int, function: Any, arguments: Sequence[Any], frame: Any = None) -> None:
        """Record what running a checkpointed function again would meet. `frame` is None for a re-entrant checkpoint."""
        nested = frame is None
        entry, reading = self._entry(index), read_function(function)
        entry.update(plain=reading.plain, effect=reading.effect)
        around = ti.tensors_used_by(function)
        if nested and any(ti.requires_grad(t) and (ti.is_view(t) or not ti.is_leaf(t)) for t in around):
            entry["effect"] = "uses a tensor with a history of its own, whose graph it would run as well"
        held = [argument.data for argument in arguments if argument.unpack_hook is None and argument.data is not None]
        leaves = {id(variable) for variable in self.variables.values()}
        if any(_lost_grad(tensor, leaves) for tensor in (*held, *around)):
            entry["argument_state"] = "frozen"
        if not self._watched(self.numbers[index]) and any(map(_needs_no_grad, (*held, *around))):
            entry["plain"] = False  # one may have required grad before: then recomputing saves other tensors
        for argument in () if nested else arguments:  # the arguments of a re-entrant checkpoint are slots of its node
            if argument.unpack_hook is None and argument.data is not None:
                state = "inplace" if self._is_stale_view(argument.data) else ti.state_of_argument(frame, argument)
                if state != "ok":
                    entry["argument_state"] = state
                    break
        if nested:
            grads = [ti.leaf_and_grad(t)[1] for t in around if ti.requires_grad(t) and not ti.is_view(t)]
            found = [ti.storage_of(grad) for grad in grads if grad is not None]
            entry["nested_grads"] = self._indices([key for key, _ in filter(None, found)])
        found = [ti.storage_of(tensor) for tensor in held]
        entry["operands"] = () if nested else self._indices([key for key, _ in filter(None, found)])

    def _is_stale_view(self, tensor: Any) -> bool:
        """Whether unpacking would rebuild a view's history, and raise. (With `settle` the engine is about to.)"""
        return not self.columns.settle and ti.maybe_stale_view(tensor) and ti.is_ordinary_view(tensor)

    def _indices(self, keys: Sequence[int]) -> tuple[int, ...]:
        storages = self.tables.storages
        return tuple(storages[key] for key in keys if key in storages)


# The code in which an idle pool worker and an idle event loop wait.
_WAITING = {concurrent.futures.thread._worker.__code__, selectors.DefaultSelector.select.__code__}


def _other_threads_active() -> bool:
    """Whether another thread may run the user's code. The kernel's own threads (daemons) and idle ones do not count."""
    frames = sys._current_frames()
    return any(
        not thread.daemon and thread is not threading.current_thread() and frames[thread.ident].f_code not in _WAITING
        for thread in threading.enumerate()
        if thread.ident in frames
    )


def _has_view_operand(node: Any) -> bool:
    """Whether an operand of an in-place write may be a view with a history: unpacking might rebuild that history.

    The first edge leads to the base before the write, the others to the operands.
    """
    return any(operand is not None and ti.may_belong_to_view(operand) for operand, _ in node.next_functions[1:])


def _saved(node: Any) -> list[Any]:
    try:
        return list(ti.saved_by_custom(node) or ())
    except RuntimeError:
        return []


def _needs_no_grad(tensor: Any) -> bool:
    return ti.is_tensor(tensor) and not ti.requires_grad(tensor) and bool(tensor.is_floating_point())


def _lost_grad(tensor: Any, leaves: set[int]) -> bool:
    """Whether a tensor required grad before and does not now, so that recomputing saves other tensors."""
    return _needs_no_grad(tensor) and (id(tensor) in leaves or hook_log.lost_its_gradient(tensor))


def _effect_on_the_graph(reading: Reading) -> str:
    """The effect of code whose arguments are gradients. Writing into one is common and mostly harmless: no effect."""
    return "" if reading.effect == WRITES_ARGUMENT else reading.effect


def _wrong_count(reading: Reading, inputs: int) -> str:
    """The effect of a backward that surely returns a wrong number of gradients. Surplus ones are allowed if None."""
    if not reading.exact or reading.returns is None:
        return ""
    count = len(reading.returns)
    if count == inputs or (count > inputs and not any(given is not False for given in reading.returns[inputs:])):
        return ""
    return f"raises: it returns {count} gradient{'s' * (count != 1)} for {inputs} input{'s' * (inputs != 1)}"


def _per_edge(reading: Reading, node: Any) -> tuple[bool | None, ...]:
    """For each edge of a custom Function, whether the gradient that its backward returns for it is a tensor."""
    returns = reading.returns
    positions = [at for at in ti.arguments_of_custom(node) if at >= 0]
    edges = sum(edge is not None for edge, _ in node.next_functions)
    if returns is None or len(positions) != edges or any(at >= len(returns) for at in positions):
        return ()
    return tuple(map(returns.__getitem__, positions))
