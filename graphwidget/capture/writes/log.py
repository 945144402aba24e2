"""The log of observed in-place writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.statements import Wrote
from graphwidget.capture.writes.through_data import Target
from graphwidget.model import Place, Write, in_order

__all__ = ["WriteLog"]

MAX_WRITES = 512  # writes remembered
MAX_STEPS = 8192  # steps of optimizers remembered for the timeline
MAX_LINES, MAX_PER_LINE = 64, 256  # lines that write through `.data`, and writes remembered for each


class _Again(NamedTuple):
    """A step of an optimizer, or a line, that wrote the same as `like`, at another place, after this number of calls.

    It becomes a `Write` when somebody reads the log: building its place takes longer than the rest of the work.
    """

    where: Place | tuple[int, int, int]
    like: Write
    after_calls: int
    made: tuple[int, ...] = ()
    number: int = -1

    def as_write(self, place: Callable[[Place | tuple[int, int, int]], Place]) -> Write:
        like, where = self.like, place(self.where)
        made, number = self.made, self.number
        return replace(like, place=where, after_calls=self.after_calls, made=made, number=number)


class WriteLog:
    """The remembered writes, oldest first.

    Parameters
    ----------
    calls
        Returns the number of backward calls that have begun.
    place
        Returns the place for a key of `Provenance.place`.
    """

    def __init__(self, calls: Callable[[], int], place: Callable[[Place | tuple[int, int, int]], Place]) -> None:
        self.calls, self.place = calls, place
        self._entries: deque[Write | _Again] = deque(maxlen=MAX_WRITES)
        self._steps: deque[Write | _Again] = deque(maxlen=MAX_STEPS)
        self._hidden: dict[tuple[int | None, int | None, int | None], list[Write]] = {}

    def writes(self) -> tuple[Write, ...]:
        """Return all remembered writes, except those through ``.data``."""
        return self._settled(self._entries)

    def steps(self) -> tuple[Write, ...]:
        """Return the remembered steps of optimizers, of which there are more than of the writes."""
        return self._settled(self._steps)

    def _settled(self, entries: deque[Write | _Again]) -> tuple[Write, ...]:
        """Turn the steps among the entries into writes."""
        for at, entry in enumerate(entries):
            if isinstance(entry, _Again):
                entries[at] = entry.as_write(self.place)
        return tuple(entries)  # type: ignore[arg-type]

    def add_step(self, where: Place | tuple[int, int, int], like: Write, part: Write | None) -> None:
        """Remember a step of an optimizer that wrote the same as `like`, and besides its parameters the same as `part`.

        `where`: its place, or the key of it.
        """
        calls = self.calls()
        step = _Again(where, like, calls)
        self._entries.append(step)
        self._steps.append(step)
        if part is not None:
            self._entries.append(_Again(where, part, calls))

    def add_line(
        self, where: tuple[int, int, int], by: str, changed: list[tuple[str, Any]], number: int, last: Wrote | None
    ) -> Wrote | None:
        """Remember what a line has written. `last`: what it wrote the last time, which is returned if it is the same.

        `where`: the key of its place. `number`: the sequence number of the next node when it began.
        """
        paths, keys = [path for path, _ in changed], _keys(changed)
        if last is not None and last.keys == keys and last.paths == paths:
            self._entries.append(_Again(where, last.write, self.calls(), _makers(changed), number))
            return last
        write = self.add(self.place(where), by, changed, False, number)
        return Wrote(paths, keys, write) if keys is not None and write is not None else None

    def add(
        self,
        place: Place | None,
        by: str,
        changed: list[tuple[str, Any]],
        optimizer: bool,
        number: int = -1,
        part: bool = False,
    ) -> Write | None:
        """Remember a write. Tensors with a name come first: `paths` belong to the first `storages`.

        `part`: of a step that is remembered already.
        """
        names: dict[int, str] = {}
        for path, tensor in changed:
            with internals.quiet():
                found = internals.storage_of(tensor)
            if found is not None and (path or found[0] not in names):
                known = names.get(found[0])
                names[found[0]] = in_order(filter(None, (path, known)))[0] if path or known else ""
        if place is None or not names:
            return None
        named = sorted(names.items(), key=lambda item: not item[1])
        storages = tuple(key for key, _ in named)
        paths = tuple(path for _, path in named if path)
        last = self._entries[-1] if self._entries else None
        last = last.like if isinstance(last, _Again) else last
        if last is not None and last.storages == storages and last.paths == paths:
            storages, paths = last.storages, last.paths  # all steps of a training loop share one copy
        made = () if optimizer else _makers(changed)
        others = () if optimizer else tuple(dict.fromkeys(path for path, _ in changed if path and path not in paths))
        number = -1 if optimizer else number
        write = Write(place, by, paths, storages, self.calls(), optimizer, made, number, others=others)
        self._entries.append(write)
        if optimizer and not part:
            self._steps.append(write)
        return write

    def hide(self, place: Place, by: str, written: list[Target], number: int) -> None:
        """Remember a write through ``.data``.

        An assignment to ``.data`` replaces the storage: a node that saved the tensor sees the new one.
        """
        line = self._hidden.setdefault((place.run, place.cell, place.line), [])
        if len(line) >= MAX_PER_LINE:
            return
        if len(self._hidden) > MAX_LINES:
            del self._hidden[next(iter(self._hidden))]
        keys: dict[int, str] = {}
        for path, ref, before, _ in written:
            with internals.quiet():
                tensor = ref()
                after = internals.storage_of(tensor) if tensor is not None else None
            keys |= {before: path} | ({after[0]: path} if after is not None else {})
        paths, storages = tuple(keys.values()), tuple(keys)
        line.append(Write(place, by, paths, storages, self.calls(), number=number))

    def hidden(self) -> Iterator[Write]:
        """Return the writes through ``.data``: the first ones of each line, as the first calls' graphs are known."""
        for line in self._hidden.values():
            yield from line


def _keys(changed: list[tuple[str, Any]]) -> list[int] | None:
    """Return the keys of the tensors' storages; None if one has none."""
    try:
        with internals.quiet():
            return [internals.storage_key(tensor) for _, tensor in changed]
    except (RuntimeError, NotImplementedError, AttributeError):
        return None


def _makers(changed: list[tuple[str, Any]]) -> tuple[int, ...]:
    """Return the sequence numbers of the tensors' nodes. Views are skipped if reading could change their history."""
    with internals.quiet():
        nodes = [internals.history(tensor, asked=False)[0] for _, tensor in changed]
    return tuple({internals.number_of(node) for node in nodes if node is not None})
