"""Which Python files are the user's own: their lines are recorded as those of cells are.

Own is every file that is not in the standard library, in `site-packages` or `dist-packages`, in torch, in IPython, or
in graphwidget itself. So the notebook's folder is, the package of a script, and an editable install. Names of packages,
modules or folders can be added and left out.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from types import CodeType
from typing import ParamSpec, TypeVar

from graphwidget.capture.installed import is_installed

__all__ = ["OUTERMOST", "OwnCode", "in_and_out", "is_outermost", "outermost"]

P = ParamSpec("P")
R = TypeVar("R")

OUTERMOST: dict[int, CodeType] = {}  # by `id`: the hash of code is computed anew each time, from all its constants


def outermost(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function of ours that makes a call for the user: what called the function is not the user's own code.

    A button runs a backward from a server, a test, an event loop; none of them has written that backward.
    """
    OUTERMOST[id(function.__code__)] = function.__code__
    return function


def is_outermost(code: CodeType) -> bool:
    """Whether a function is marked by `outermost`."""
    return id(code) in OUTERMOST


class OwnCode:
    """Answers whether a file is the user's own.

    Parameters
    ----------
    added, left_out
        Names of packages or modules, or paths of files or folders. Of two that match, the longer path decides.
    """

    def __init__(self, added: Iterable[str] = (), left_out: Iterable[str] = ()) -> None:
        self.added: dict[str, str] = {}  # name as given -> path
        self.left_out: dict[str, str] = {}
        self.expected: dict[str, tuple[bool, str]] = {}  # a name of a setting -> whether to add it, and the setting
        self.trouble = ""  # what is wrong with a setting, as a sentence
        self._foreign = _foreign_folders()
        self.change(added, left_out)

    def change(self, added: Iterable[str] = (), left_out: Iterable[str] = ()) -> None:
        """Add names, or leave them out.

        Raises
        ------
        ValueError
            If there is no such file, folder or module. Then nothing has changed.
        """
        new = {name: _path_of(name) for name in added}
        old = {name: _path_of(name) for name in left_out}
        self.added = {name: path for name, path in (self.added | new).items() if name not in old}
        self.left_out = {name: path for name, path in (self.left_out | old).items() if name not in new}

    def expect(self, names: Iterable[str], setting: str) -> None:
        """Add names of a setting, or leave them out: now, or when their module has been imported."""
        for add, some in zip((True, False), in_and_out(names)):
            for name in some:
                self.expected.pop(name, None)
                try:
                    self.change(*(([name],) if add else ([], [name])))
                except ValueError:
                    self.expected[name] = (add, setting)

    def _meet_expected(self) -> None:
        for name in [name for name in self.expected if name in sys.modules]:
            add, setting = self.expected.pop(name)
            self.expect([name if add else f"-{name}"], setting)

    def __str__(self) -> str:
        added = "".join(f", and {name}" for name in self.added)
        left_out = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        return " ".join([f"Recorded are the lines of cells, of your own files{added}{left_out}.", *self.troubles()])

    def notes(self) -> tuple[str, ...]:
        """Sentences on what a setting or the user has left out, and on what is wrong with a setting."""
        left_out = (f"Left out, so that its lines are unknown: {', '.join(self.left_out)}.",) if self.left_out else ()
        return (*left_out, *self.troubles())

    def troubles(self) -> tuple[str, ...]:
        """Sentences on what is wrong with a setting."""
        self._meet_expected()
        missing = tuple(f"{setting}: no module {name} was imported." for name, (_, setting) in self.expected.items())
        return (self.trouble, *missing) if self.trouble else missing

    def __call__(self, filename: str) -> bool:
        """Whether the code that was compiled under a file name is the user's own, and its file is there."""
        if not filename.endswith(".py") or not os.path.isfile(filename):
            return False  # frozen, zipped, byte-compiled, or made by `exec`
        if self.expected:
            self._meet_expected()
        path = os.path.realpath(filename)
        added = max((len(p) for p in self.added.values() if _is_in(path, p)), default=0)
        left_out = max((len(p) for p in self.left_out.values() if _is_in(path, p)), default=0)
        if added or left_out:
            return added > left_out
        if is_installed(path):
            return False
        return not any(_is_in(path, folder) for folder in self._foreign)


def in_and_out(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names to add, and those to leave out: ``["mylib", "-other"]``."""
    given = list(names)
    return (
        [name.removeprefix("+") for name in given if not name.startswith("-")],
        [name[1:] for name in given if name.startswith("-")],
    )


def _foreign_folders() -> tuple[str, ...]:
    """The standard library, and the packages that may be installed from a checkout."""
    known = sysconfig.get_paths()
    folders = [known[key] for key in ("stdlib", "platstdlib") if key in known]
    loaded = (sys.modules.get(name) for name in ("torch", "IPython", "graphwidget"))
    folders += [os.path.dirname(file) for module in loaded if (file := getattr(module, "__file__", None))]
    return tuple(dict.fromkeys(map(os.path.realpath, folders)))


def _path_of(name: str) -> str:
    """The folder or file that a name stands for.

    Raises
    ------
    ValueError
        If there is no such file, folder or module.
    """
    if os.path.exists(name):
        return os.path.realpath(name)
    loaded = getattr(sys.modules.get(name), "__file__", None)
    try:
        spec = None if loaded else find_spec(name)
    except (ImportError, ValueError):
        spec = None
    file = loaded or (spec.origin if spec is not None and spec.has_location else None)
    if file is None:
        raise ValueError(f"{name!r}: there is no such file, folder or module")
    path = os.path.realpath(file)
    return os.path.dirname(path) if os.path.basename(path) == "__init__.py" else path


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)
