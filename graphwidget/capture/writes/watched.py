"""The tensors whose versions are compared around lines."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphwidget import torch_internals as internals

__all__ = ["MAX_WATCHED", "WatchedTensors", "version_of"]

MAX_WATCHED = 1000  # tensors compared around a line, about 0.1 µs each


def version_of(tensor: Any) -> int | None:
    """Return how often a tensor was modified in place; None for a tensor without a version counter."""
    try:
        return internals.version(tensor)
    except RuntimeError:  # inference tensors count no versions
        return None


def _gone() -> None: ...


class WatchedTensors:
    """Weak references to tensors, in columns: the version at the last comparison, and the name."""

    def __init__(self) -> None:
        self.refs: list[Callable[[], Any]] = []
        self.versions: list[int] = []
        self.paths: list[str] = []
        self.index: dict[int, int] = {}  # id of a tensor -> position

    def replace(self, tensors: Iterable[tuple[str, Any]]) -> None:
        """Watch these (name, tensor) pairs instead of those watched so far."""
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

    def position(self, tensor: Any) -> int | None:
        """Return the position of a tensor; None if not watched. A new one may have the `id` of one that is gone."""
        at = self.index.get(id(tensor))
        return at if at is not None and self.refs[at]() is tensor else None

    def name(self, tensor: Any) -> str:
        """Return the name of a tensor; empty if not watched."""
        at = self.position(tensor)
        return self.paths[at] if at is not None else ""

    def add(self, tensors: Sequence[tuple[str, Any]]) -> None:
        """Watch these, too. Those watched so far keep their positions while there is room."""
        new = []
        for path, tensor in tensors:
            at = self.position(tensor)
            if at is not None:
                self.paths[at] = path
            else:
                new.append((path, tensor))
        if len(self.refs) + len(new) > MAX_WATCHED:
            before = [
                (path, one) for path, ref in zip(self.paths, self.refs, strict=True) if (one := ref()) is not None
            ]
            self.replace([*new, *before])
            return
        with internals.quiet():
            for path, tensor in new:
                version = version_of(tensor)
                if version is not None:
                    self.index[id(tensor)] = len(self.refs)
                    self.refs.append(weakref.ref(tensor))
                    self.versions.append(version)
                    self.paths.append(path)

    def let_go(self, tensor: Any) -> Callable[[], None]:
        """Drop the reference to a tensor for a while. Returns a function that watches it again, at its version then."""
        at = self.position(tensor)
        if at is None:
            return lambda: None
        refs, versions = self.refs, self.versions
        refs[at], versions[at] = _gone, -1

        def take_hold() -> None:
            with internals.quiet():
                now = version_of(tensor)
            if now is not None:
                refs[at], versions[at] = weakref.ref(tensor), now

        return take_hold

    def named(self, path: str) -> Any:
        """Return the tensor with a name, None if there is none."""
        return self.refs[self.paths.index(path)]() if path in self.paths else None

    def changes(self) -> list[tuple[str, Any]]:
        """Return the names and tensors whose version has changed since the last comparison."""
        version = internals.version
        with internals.quiet():
            tensors = [ref() for ref in self.refs]
            now = [-1 if tensor is None else version(tensor) for tensor in tensors]
        before = self.versions
        if now == before:
            return []
        self.versions = now
        return [(self.paths[i], tensors[i]) for i in range(len(now)) if now[i] != before[i] and now[i] >= 0]
