"""The tensors whose versions are watched, and the log of the writes that were seen."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from graphwidget import torch_internals as internals
from graphwidget.model import Place, Write, in_order

__all__ = ["Log", "Step", "Watched", "version_of"]

MAX_WATCHED = 1000  # tensors compared around a line, about 0.1 µs each
MAX_WRITES = 512  # writes remembered
MAX_LINES, MAX_OF_A_LINE = 64, 256  # the same for writes through `.data`


def version_of(tensor: Any) -> int | None:
    """How often a tensor was modified in place, None if it does not count."""
    try:
        return internals.version(tensor)
    except RuntimeError:  # inference tensors count no versions
        return None


def _gone() -> None: ...


class Watched:
    """Tensors by weak references, in columns: each with its version when it was last compared, and its name."""

    def __init__(self) -> None:
        self.refs: list[Callable[[], Any]] = []
        self.versions: list[int] = []
        self.paths: list[str] = []
        self.index: dict[int, int] = {}  # id of a tensor -> position

    def replace(self, tensors: Iterable[tuple[str, Any]]) -> None:
        """Watch these, by name, instead of those watched so far."""
        refs: list[Callable[[], Any]] = []
        versions, paths = [], []
        with internals.quiet():
            for path, tensor in tensors:
                at = version_of(tensor)
                if at is not None and len(refs) < MAX_WATCHED:
                    refs.append(weakref.ref(tensor))
                    versions.append(at)
                    paths.append(path)
        self.refs, self.versions, self.paths = refs, versions, paths
        self.index = {id(ref()): i for i, ref in enumerate(refs)}

    def add(self, tensors: Sequence[tuple[str, Any]]) -> None:
        """Watch these beside those watched so far, whose positions stay while there is room."""
        new = []
        for path, tensor in tensors:
            at = self.index.get(id(tensor))
            if at is not None and self.refs[at]() is tensor:
                self.paths[at] = path
            else:
                new.append((path, tensor))
        if len(self.refs) + len(new) > MAX_WATCHED:
            before = [
                (path, one) for path, ref in zip(self.paths, self.refs, strict=True) if (one := ref()) is not None
            ]
            self.replace([*new, *before])
            return
        self.refs = list(self.refs)  # another list: who relies on the tensors of this one looks at them anew
        with internals.quiet():
            for path, tensor in new:
                version = version_of(tensor)
                if version is not None:
                    self.index[id(tensor)] = len(self.refs)
                    self.refs.append(weakref.ref(tensor))
                    self.versions.append(version)
                    self.paths.append(path)

    def let_go(self, tensor: Any) -> Callable[[], None]:
        """Drop the reference to a tensor for a while. Returns what takes hold of it again, with the version by then."""
        at = self.index.get(id(tensor))
        if at is None or self.refs[at]() is not tensor:
            return lambda: None
        refs, versions = self.refs, self.versions
        refs[at], versions[at] = _gone, -1

        def take_hold() -> None:
            with internals.quiet():
                now = version_of(tensor)
            if now is not None:
                refs[at], versions[at] = weakref.ref(tensor), now

        return take_hold

    def named(self, path: str) -> list[tuple[str, Any]]:
        """The tensor of this name, if there is one."""
        at = self.paths.index(path) if path in self.paths else -1
        tensor = self.refs[at]() if at >= 0 else None
        return [(path, tensor)] if tensor is not None else []

    def changes(self) -> list[tuple[str, Any]]:
        """Those whose version is another one than last time."""
        version = internals.version
        with internals.quiet():
            tensors = [ref() for ref in self.refs]
            now = [-1 if tensor is None else version(tensor) for tensor in tensors]
        before = self.versions
        if now == before:
            return []
        self.versions = now
        return [(self.paths[i], tensors[i]) for i in range(len(now)) if now[i] != before[i] and now[i] >= 0]


class Step(NamedTuple):
    """A step of an optimizer like `write`, at another place (its key), after so many calls; its `n`-th such step."""

    spot: tuple[int, int, int]
    write: Write
    after_calls: int
    optimizer: int  # its `id`
    n: int


class Log:
    """The writes that are remembered, oldest first.

    Parameters
    ----------
    calls
        How many backward calls have begun.
    place
        What the key of a place says.
    """

    def __init__(self, calls: Callable[[], int], place: Callable[[tuple[int, int, int]], Place]) -> None:
        self.calls, self.place = calls, place
        self.entries: deque[Write | Step] = deque(maxlen=MAX_WRITES)
        self._hidden: dict[tuple[int | None, int | None, int | None], list[Write]] = {}

    def writes(self) -> deque[Write]:
        """All of them as such: a step becomes a `Write` when somebody asks."""
        entries = self.entries
        for at, step in enumerate(entries):
            if type(step) is Step:
                like, place = step.write, self.place(step.spot)
                entries[at] = Write(place, like.by, like.paths, like.storages, step.after_calls, like.optimizer)
        return entries  # type: ignore[return-value]

    def forget_steps(self, optimizer: int, newer: int) -> None:
        """Drop the steps of an optimizer with a higher `n`."""
        kept = [e for e in self.entries if type(e) is not Step or e.optimizer != optimizer or e.n <= newer]
        self.entries = deque(kept, maxlen=MAX_WRITES)

    def add(
        self, place: Place | None, by: str, changed: list[tuple[str, Any]], optimizer: bool, number: int = -1
    ) -> Write | None:
        """Remember a write. Tensors with a name come first: `paths` belong to the first `storages`."""
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
        last = self.entries[-1] if self.entries else None
        last = last.write if type(last) is Step else last
        if isinstance(last, Write) and last.storages == storages and last.paths == paths:
            storages, paths = last.storages, last.paths  # one copy for all the steps of a training loop
        made = () if optimizer else _makers(changed)
        write = Write(place, by, paths, storages, self.calls(), optimizer, made, -1 if optimizer else number)
        self.entries.append(write)
        return write

    def hide(self, place: Place, by: str, written: list[tuple[str, Any, int]], number: int) -> None:
        """Remember a write through ``.data``: path, weak reference, key of the storage when the line began.

        An assignment to ``.data`` changes the storage: what saved the tensor sees the new one.
        """
        keys: dict[int, str] = {}
        for path, ref, before in written:
            with internals.quiet():
                tensor = ref()
                after = internals.storage_of(tensor) if tensor is not None else None
            keys |= {before: path} | ({after[0]: path} if after is not None else {})
        paths, storages = tuple(keys.values()), tuple(keys)
        line = self._hidden.setdefault((place.run, place.cell, place.line), [])
        if len(line) < MAX_OF_A_LINE:
            line.append(Write(place, by, paths, storages, self.calls(), number=number))
        if len(self._hidden) > MAX_LINES:
            del self._hidden[next(iter(self._hidden))]

    def hidden(self) -> Iterator[Write]:
        """The writes through ``.data``: of each line the first ones, as the graphs of the first calls are known."""
        for line in self._hidden.values():
            yield from line


def _makers(changed: list[tuple[str, Any]]) -> tuple[int, ...]:
    """The sequence numbers of the tensors' nodes, where reading a history cannot change it."""
    with internals.quiet():
        nodes = [internals.history(tensor, asked=False)[0] for _, tensor in changed]
    return tuple({node._sequence_nr() for node in nodes if node is not None})
