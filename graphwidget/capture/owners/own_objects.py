"""Where the user's own objects are that no variable of a cell or of a running function leads to.

The variables of modules of the user's own, what functions and classes that are written there keep, and objects of the
user's own classes that a library's running functions hold: a framework was given a module, and has the only name for
it. A function keeps what is in its closure, as that of a decorator that remembers results, and what its arguments have
by default; a class keeps what all its objects share.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType, FunctionType, ModuleType
from typing import Any
from weakref import ref

from graphwidget.capture.owners import reading
from graphwidget.capture.owners.plans import ATOMS

__all__ = ["OwnObjects"]

_flags = type.__dict__["__flags__"].__get__  # past any metaclass

MOST_MODULES = 200
MOST_FRAMES = 200


class OwnObjects:
    """Finds them, each with the beginning of its path.

    Parameters
    ----------
    modules
        Returns the names of the modules of the user's own code that have run.
    is_own
        Whether a file is the user's own.
    """

    def __init__(self, modules: Callable[[], Sequence[str]], is_own: Callable[[str], bool]) -> None:
        self.modules, self.is_own = modules, is_own
        self._own: dict[str, bool] = {}  # name of a module -> whether it is the user's own
        self._kept: dict[
            int, tuple[ref[type], int, list[str]]
        ] = {}  # class -> how many attributes, those that may keep

    def find(self, frame: FrameType | None, frames: Iterable[FrameType]) -> Iterator[tuple[str, str, Any]]:
        """Yield paths, kinds of owner, and objects.

        Parameters
        ----------
        frame
            Where to begin, outwards: the frame of the caller.
        frames
            The running frames of the user's own code, innermost first.
        """
        own = list(frames)
        if own:
            yield from self._in_frames(frame, own)
        yield from self._in_modules()

    def _in_frames(self, frame: FrameType | None, own: list[FrameType]) -> Iterator[tuple[str, str, Any]]:
        """Objects of the user's own classes in frames of libraries, up to the outermost own frame."""
        names, mine = {id(one) for one in own}, id(own[-1])
        found: list[tuple[str, str, Any]] = []
        for _ in range(MOST_FRAMES):
            if frame is None or id(frame) == mine:
                break
            if id(frame) not in names and frame.f_code.co_flags & reading.CO_OPTIMIZED:
                for name, value in reading.locals_of(frame):
                    if self._is_of_own_class(type(value)):
                        found.append((name, f"{frame.f_code.co_name}:{name}", value))
            frame = frame.f_back
        for _, path, value in sorted(found, key=lambda one: one[0] == "self"):
            yield path, "frame", value

    def _in_modules(self) -> Iterator[tuple[str, str, Any]]:
        for name in self.modules()[:MOST_MODULES]:
            module = sys.modules.get(name)
            if type(module) is not ModuleType or name == "__main__":
                continue
            for variable, value in list(vars(module).items()):
                if variable.startswith("__"):
                    continue
                path = f"{name.rpartition('.')[2]}:{variable}"
                if _is_class_of(value, name):
                    yield from ((f"{path}.{rest}", "variable", one) for rest, one in self._shared_by(value))
                elif _may_keep(value):
                    yield path, "variable", value

    def _shared_by(self, cls: type) -> Iterator[tuple[str, Any]]:
        """What all objects of a class share and that may keep something: methods, and other attributes of the class.

        Most methods keep nothing. Each class is looked at once, and again when it has got more.
        """
        mine = reading.class_dict(cls)
        known = self._kept.get(id(cls))
        if known is None or known[0]() is not cls or known[1] != len(mine):
            own = [(name, value) for name, value in mine.items() if name[:2] != "__" or type(value) is FunctionType]
            names = [
                name for name, value in own if type(_inside(value)) is not FunctionType or _may_keep(_inside(value))
            ]
            known = self._kept[id(cls)] = ref(cls), len(mine), names
        for name in known[2]:
            value = _inside(mine.get(name))
            if _may_keep(value):
                yield name, value

    def _is_of_own_class(self, cls: type) -> bool:
        if cls in (FunctionType, ModuleType) or not _flags(cls) & 1 << 9:  # Py_TPFLAGS_HEAPTYPE
            return False
        name = reading.module_of(cls)
        known = self._own.get(name)
        if known is None:
            file = getattr(sys.modules.get(name), "__file__", None)
            known = self._own[name] = name == "__main__" or (isinstance(file, str) and self.is_own(file))
        return known


def _is_class_of(value: Any, module: str) -> bool:
    """Whether a value is a class that a module defines."""
    cls = type(value)
    return (cls is type or type in reading.mro_of(cls)) and reading.module_of(value) == module


def _inside(value: Any) -> Any:
    """The function of a static method, a class method or a property; else the value."""
    if type(value) in (staticmethod, classmethod):
        value = value.__func__
    return value.fget if type(value) is property else value


def _may_keep(value: Any) -> bool:
    """Whether a search goes into a value: not into classes, other modules, and functions that keep nothing.

    Of most functions that have a closure, this is the class, which `super` needs.
    """
    if type(value) is not FunctionType:
        return type(value) not in ATOMS and type(value) not in (ModuleType, type)
    if value.__closure__ is not None and value.__code__.co_freevars != ("__class__",):
        return True
    if value.__defaults__ is not None and not ATOMS.issuperset(map(type, value.__defaults__)):
        return True
    return bool(value.__kwdefaults__ or value.__dict__)
