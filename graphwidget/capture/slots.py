"""What each node has saved: the state of every slot, read without unpacking anything that a hook packed.

How a state is told (measured on torch 2.13; FREED and UNSAVED both show as "no data"):

* PACKED: `unpack_hook` is set. `.data` is then the packed object, whatever it is.
* HELD at once: the tensor requires grad and its version is 0, so nothing can have been modified since.
* Otherwise the slot is unpacked (a comparison of two numbers where no hook is set), which raises if STALE.
  A slot that saved a view which may be stale is not unpacked in this way: see `_view_slot`.
* UNSAVED: no data, and the unpacking attribute gives None; FREED: it raises. Raising costs 8-25 us, so a slot
  that an earlier snapshot saw HELD is FREED without asking, and what was FREED or UNSAVED stays so.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sys
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphwidget.model import SlotState, Snapshot

from . import torch_internals as ti

__all__ = ["SlotColumns", "Tables"]

_version, _requires_grad, _nbytes = ti.version, ti.requires_grad, ti.nbytes
_dtype, _shape, _untyped_storage = ti.dtype, ti.shape, ti.untyped_storage

HELD, FREED, STALE, PACKED, UNSAVED, UNKNOWN = (int(state) for state in SlotState)
_DETACHED = -2  # told apart from STALE only until it is written down


class Tables:
    """What slots, leaves and facts share: numbered texts, types, shapes and storages."""

    def __init__(self) -> None:
        self.slot_names: dict[str, int] = {}
        self.dtypes: dict[Any, int] = {}
        self.shapes: dict[Any, int] = {}
        self.storages: dict[int, int] = {}  # key -> index
        self.storage_bytes: list[int] = []
        self.storage_version: list[int] = []

    def storage(self, tensor: Any) -> int:
        """Index of the memory behind a tensor, -1: it has none that could be named."""
        found = ti.storage_of(tensor)
        if found is None:
            return -1
        key, size = found
        at = self.storages.get(key)
        if at is None:
            at = self.storages[key] = len(self.storage_bytes)
            self.storage_bytes.append(size)
            self.storage_version.append(ti.version_of(tensor))
        return at

    def intern(self, table: dict[Any, int], value: Any) -> int:
        at = table.get(value)
        if at is None:
            at = table[value] = len(table)
        return at

    def slot_name_at(self, index: int) -> str:
        return next(name for name, at in self.slot_names.items() if at == index)

    def dtype(self, tensor: Any) -> int:
        try:
            return self.intern(self.dtypes, ti.dtype(tensor))
        except (RuntimeError, TypeError):
            return -1

    def shape(self, tensor: Any) -> int:
        try:
            return self.intern(self.shapes, ti.shape(tensor))
        except (RuntimeError, TypeError):
            return -1


class SlotColumns:
    """Fills the slot columns of a snapshot, node by node.

    Parameters
    ----------
    tables
        Where texts, types, shapes and storages are numbered.
    previous
        An earlier snapshot: what it proved need not be asked again.
    freed_by
        uid -> n of the call that freed the node.
    settle
        Unpack views in doubt too. Only right where the engine is about to do the same.
    """

    def __init__(self, tables: Tables, previous: Snapshot | None, freed_by: Mapping[int, int], settle: bool) -> None:
        self.tables = tables
        self.previous = previous
        self.freed_by = freed_by
        self.settle = settle
        self.start = array("i", [0])
        self.name: list[int] = []
        self.state = bytearray()
        self.dtype: list[int] = []
        self.shape: list[int] = []
        self.bytes: list[int] = []
        self.storage: list[int] = []
        self.freed: list[int] = []
        self.version: list[int] = []
        # Bound once: they run eight times a slot.
        self._name, self._state, self._dtype, self._shape = (
            self.name.append,
            self.state.append,
            self.dtype.append,
            self.shape.append,
        )
        self._bytes, self._storage, self._freed_by, self._version = (
            self.bytes.append,
            self.storage.append,
            self.freed.append,
            self.version.append,
        )
        self.detached: dict[int, str] = {}  # node -> slot name
        self.packed: dict[int, list[Any]] = {}  # node -> unpack hooks of its packed slots
        self.empty_after_release: set[int] = set()  # nodes that were released but show no slot
        self.unreadable: dict[str, int] = {}  # node name -> how many
        self.in_doubt = 0
        self.calibrating: list[int] | None = None
        self._views: list[tuple[int, int, Any, bool]] = []  # (position, node, slot, custom?) left for the other thread
        self._now: tuple[int, int] = (-1, -1)  # (index, uid) of the node being read
        self._first = 0

    # ------------------------------------------------------------ one node

    def read(self, nodes: Sequence[Any], uids: Sequence[int], names: Sequence[str]) -> None:
        """Read the slots of all `nodes`. Never raises: a node that cannot be read gets one UNKNOWN slot."""
        specs: dict[type, tuple[tuple[str, str, str, int], ...] | None] = {}
        end = self.start.append
        for index, node in enumerate(nodes):
            cls = type(node)
            if cls in specs:
                spec = specs[cls]
            else:
                spec = specs[cls] = self._spec(cls)
            if spec is None or spec:
                self._now, self._first = (index, uids[index]), len(self.state)
                try:
                    if spec is None:
                        self._custom(node)
                    else:
                        self._generated(node, spec)
                except Exception:
                    self._unreadable(names[index])
            end(len(self.state))
        self._settle_views()

    def skip(self, count: int) -> None:
        """Nodes whose slots are not asked for."""
        self.start.extend([len(self.state)] * count)

    def _spec(self, cls: type) -> tuple[tuple[str, str, str, int], ...] | None:
        if ti.is_custom_function(cls):
            return None
        intern, table = self.tables.intern, self.tables.slot_names
        return tuple((raw, saved, shown, intern(table, shown)) for raw, saved, shown in ti.slot_names(cls))

    def _unreadable(self, name: str) -> None:
        del self.state[self._first :]
        for column in (self.name, self.dtype, self.shape, self.bytes, self.storage, self.freed, self.version):
            del column[self._first :]
        self._views = [view for view in self._views if view[0] < self._first]
        self._add("?", UNKNOWN)
        self.unreadable[name] = self.unreadable.get(name, 0) + 1

    def _generated(self, node: Any, spec: tuple[tuple[str, str, str, int], ...]) -> None:
        for raw, saved, shown, name in spec:
            try:
                slot = getattr(node, raw)
            except RuntimeError:  # a list slot that was released
                self._released_list(shown)
                continue
            if type(slot) is tuple:
                for i, part in enumerate(slot):
                    self._slot(node, part, None, f"{shown}[{i}]")
            elif slot is not None:
                data = slot.data
                if data is None or slot.unpack_hook is not None:
                    self._slot(node, slot, saved, shown)
                    continue
                version = _version(data)
                if version == 0 and _requires_grad(data):  # the common case: no further call
                    state = HELD
                else:
                    state = self._held(node, slot, data, saved, shown, version)
                self._write(name, state, data, version, shown)

    def _custom(self, node: Any) -> None:
        try:
            slots = ti.saved_by_custom(node) or ()
        except RuntimeError:
            self._released_list("saved_tensors", node)
            return
        for i, slot in enumerate(slots):
            self._slot(node, slot, None, f"saved_tensors[{i}]")

    # ------------------------------------------------------------ one slot

    def _slot(self, node: Any, slot: Any, saved: str | None, shown: str) -> None:
        """Any slot: `saved` is the attribute that unpacks it, None where only the slot itself can."""
        hook, data = slot.unpack_hook, slot.data
        if hook is not None:
            self._packed(hook, data, shown)
        elif data is None:
            self._gone(node, slot, saved, shown)
        else:
            version = ti.version_of(data)
            state = self._held(node, slot, data, saved, shown, version)
            self._write(self.tables.intern(self.tables.slot_names, shown), state, data, version, shown)

    def _held(self, node: Any, slot: Any, data: Any, saved: str | None, shown: str, version: int) -> int:
        wants = ti.requires_grad(data)
        if version <= 0 and (wants or ti.is_custom_function(type(node)) or ti.is_output_slot(shown)):
            return HELD
        if version > 0 and wants:
            proof = self._proof(shown, version)
            if proof is not None:
                return proof
        if version > 0 and ti.maybe_stale_view(data):
            return self._view_slot(node, slot, data)
        return _unpack(node, slot, data, saved, shown)

    def _view_slot(self, node: Any, slot: Any, data: Any) -> int:
        """A view of something that was modified at some time: was that before or after it was saved?

        Unpacking answers, but if it was after, torch makes the view a new node, with a new number. Nobody can
        see that for a view that only this slot holds, done on a thread of its own, whose numbers nobody
        uses. For a view that the user holds too it would show: then the answer is UNKNOWN.
        """
        references = sys.getrefcount(data)
        if self.calibrating is not None:
            self.calibrating.append(references)
            return UNKNOWN
        if self.settle:
            return _immune(node, _unpack_slot(slot))
        if references > _references_of_a_hidden_view():
            self.in_doubt += 1
            return UNKNOWN
        self._views.append((len(self.state), self._now[0], slot, ti.is_custom_function(type(node))))
        return UNKNOWN

    def _settle_views(self) -> None:
        if not self._views:
            return
        views, self._views = self._views, []
        found: list[int] = []
        _on_another_thread(lambda: found.extend(_unpack_slot(slot) for _, _, slot, _ in views))
        for (position, index, _, custom), state in zip(views, found, strict=False):
            if state == _DETACHED and not custom:
                self.detached.setdefault(index, self.tables.slot_name_at(self.name[position]))
            self.state[position] = HELD if state == _DETACHED and custom else STALE if state == _DETACHED else state
            if state != HELD:
                self.version[position] = -1

    def _proof(self, shown: str, version: int) -> int | None:
        """What the previous snapshot proves about a held slot that stands at `version`."""
        at = self._before(shown)
        if at is None:
            return None
        before = self.previous.slot_state[at]  # type: ignore[union-attr]
        if before == STALE:
            return STALE
        if before == HELD:
            return HELD if self.previous.slot_version[at] == version else STALE  # type: ignore[union-attr]
        return None

    def _before(self, shown: str) -> int | None:
        """Position in the previous snapshot of the slot that is being read now."""
        previous = self.previous
        if previous is None:
            return None
        index = previous.index_of.get(self._now[1])
        if index is None:
            return None
        at = previous.slot_start[index] + len(self.state) - self._first
        if at >= previous.slot_start[index + 1] or previous.slot_names[previous.slot_name[at]] != shown:
            return None
        return at

    # ------------------------------------------------------------ nothing there, or something packed

    def _gone(self, node: Any, slot: Any, saved: str | None, shown: str) -> None:
        at = self._before(shown)
        before = UNKNOWN if at is None else self.previous.slot_state[at]  # type: ignore[union-attr]
        if before in (HELD, STALE, FREED, PACKED):
            self._freed(shown, at)
        elif before == UNSAVED or ti.was_never_saved(node, slot, saved):
            self._add(shown, UNSAVED)
        else:
            self._freed(shown, None)

    def _freed(self, shown: str, before: int | None) -> None:
        """Write a freed slot, with what an earlier snapshot knew of it."""
        self._add(shown, FREED)
        if before is not None:
            old, at = self.previous, len(self.state) - 1
            assert old is not None
            if old.slot_dtype[before] >= 0:
                self.dtype[at] = self.tables.intern(self.tables.dtypes, old.dtypes[old.slot_dtype[before]])
            if old.slot_shape[before] >= 0:
                self.shape[at] = self.tables.intern(self.tables.shapes, old.shapes[old.slot_shape[before]])
            self.bytes[at] = old.slot_bytes[before]

    def _released_list(self, shown: str, custom: Any = None) -> None:
        """The slots of a list that raises because it was released: how many there were, only an earlier look knows."""
        old = self.previous
        index = None if old is None else old.index_of.get(self._now[1])
        if old is None or index is None:
            if custom is not None and _never_saves(ti.function_with_context(custom)):
                self.empty_after_release.add(self._now[0])
            else:
                self._add(shown, FREED)
            return
        found = 0
        first = old.slot_start[index] + len(self.state) - self._first
        for at in range(first, old.slot_start[index + 1]):
            name = old.slot_names[old.slot_name[at]]
            if name != shown and not name.startswith(shown + "["):
                break
            self._freed(name, at)
            found += 1
        if not found and custom is not None:
            self.empty_after_release.add(self._now[0])

    def _packed(self, hook: Any, data: Any, shown: str) -> None:
        self.packed.setdefault(self._now[0], []).append(hook)
        tensors = [t for t in (data if type(data) in (tuple, list) else (data,)) if ti.is_tensor(t)]
        name = self.tables.intern(self.tables.slot_names, shown)
        if len(tensors) == 1:
            self._write(name, PACKED, tensors[0], -1, shown)
            self.version[-1] = -1
        else:
            self._add(shown, PACKED)
            self.bytes[-1] = sum(ti.bytes_of(t) for t in tensors)

    # ------------------------------------------------------------ columns

    def _add(self, shown: str, state: int) -> None:
        freed = self.freed_by.get(self._now[1], -1) if state == FREED else -1
        self.name.append(self.tables.intern(self.tables.slot_names, shown))
        self.state.append(state)
        self.dtype.append(-1)
        self.shape.append(-1)
        self.bytes.append(0)
        self.storage.append(-1)
        self.freed.append(freed)
        self.version.append(-1)

    def _write(self, name: int, state: int, data: Any, version: int, shown: str) -> None:
        """A slot with a tensor in it. Written out because it runs once a slot of a graph of any size."""
        if state == _DETACHED:
            self.detached.setdefault(self._now[0], shown)
            state = STALE
        tables = self.tables
        try:
            storage = _untyped_storage(data)
            key = storage._cdata
            at = tables.storages.get(key, -1)
            if at < 0:
                at = tables.storages[key] = len(tables.storage_bytes)
                tables.storage_bytes.append(storage.nbytes())
                tables.storage_version.append(version)
            size = _nbytes(data)
        except Exception:  # sparse, nested or functional: no storage of its own
            at, size = -1, ti.bytes_of(data)
        dtype = tables.dtypes.get(_dtype(data), -1)
        self._dtype(dtype if dtype >= 0 else tables.dtype(data))
        try:
            shape = tables.shapes.get(_shape(data), -1)
        except TypeError:  # a length that is not one number
            shape = -1
        self._shape(shape if shape >= 0 else tables.shape(data))
        self._name(name)
        self._state(state)
        self._bytes(size)
        self._storage(at)
        self._freed_by(-1)
        self._version(version if state == HELD or state == UNKNOWN else -1)


def _on_another_thread(work: Callable[[], None]) -> None:
    """Run `work` where it takes none of this thread's sequence numbers. Its exceptions are dropped."""

    def guarded() -> None:
        with ti.quiet():
            try:
                work()
            except Exception:
                return

    thread = threading.Thread(target=guarded, name="graphwidget-slots")
    thread.start()
    thread.join()


@functools.lru_cache(maxsize=1)
def _references_of_a_hidden_view() -> int:
    """References to a saved view that nobody but its slot holds, counted where `_view_slot` counts them."""
    columns = SlotColumns(Tables(), None, {}, False)
    columns.calibrating = []
    _on_another_thread(lambda: columns.read([ti.node_that_saved_a_view()], [0], [""]))
    return min(columns.calibrating, default=0)


def _immune(node: Any, state: int) -> int:
    """A custom Function's saved tensors are handed out although they were `.detach_()`ed."""
    return HELD if state == _DETACHED and ti.is_custom_function(type(node)) else state


def _unpack(node: Any, slot: Any, data: Any, saved: str | None, shown: str) -> int:
    """Unpack a slot without hook and say what came of it."""
    if saved is None:
        return _unpack_one_of_many(node, slot, data, shown)
    try:
        got = getattr(node, saved)
    except RuntimeError as error:
        state = _state_of(error)
        if state == STALE and not ti.requires_grad(data) and not ti.is_output_slot(shown):
            return _unpack_slot(slot) or STALE  # torch looks for `.detach_()` before it looks at versions
        return state
    # The attribute vouches for the node and so hides a `.detach_()`; the slot alone does not. (An output is not `data`)
    if got is data and not ti.requires_grad(data):
        return _unpack_slot(slot)
    return HELD


def _unpack_slot(slot: Any) -> int:
    unpack: Callable[[], Any] | None = getattr(slot, "unpack", None)
    if unpack is None:  # torch < 2.12
        return UNKNOWN
    try:
        unpack()
    except RuntimeError as error:
        return _state_of(error)
    return HELD


def _unpack_one_of_many(node: Any, slot: Any, data: Any, shown: str) -> int:
    """An element of a list, or of a custom Function's saved tensors. Alone, an output looks as if it were detached."""
    state = _unpack_slot(slot)
    if state not in (_DETACHED, UNKNOWN):
        return state
    custom = ti.is_custom_function(type(node))
    if state == _DETACHED and not custom and not ti.is_output_slot(shown):
        return _DETACHED
    if ti.version_of(data) <= 0:
        return HELD
    try:
        ti.unpack_all(node, shown)
    except RuntimeError as error:
        found = _state_of(error)
        return STALE if found == STALE else UNKNOWN
    return HELD


def _state_of(error: RuntimeError) -> int:
    text = str(error)
    if "modified by an inplace" in text:
        return STALE
    if "detached in-place" in text:
        return _DETACHED
    if "second time" in text:
        return FREED
    return UNKNOWN


def _never_saves(function: Any) -> bool:
    """Whether a function uses its context (first argument) for attributes only, `save_for_backward` not among them."""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_argcount or "save_for_backward" in code.co_names:
        return False
    context = code.co_varnames[0]
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("RESUME", "CACHE")]
    for step, after in itertools.pairwise([*steps, steps[-1]]):
        named = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if context in named and (
            step.opname.count("FAST") != 1 or "_ATTR" not in after.opname and "METHOD" not in after.opname
        ):
            return False
    return True
