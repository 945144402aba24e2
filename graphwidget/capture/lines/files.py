"""The text of a file, if it is that of the code that ran: a file may have been edited since it was imported."""

from __future__ import annotations

import inspect
import os
import tokenize
from collections.abc import Iterator
from types import CodeType

__all__ = ["SourceFile", "block_of"]

_REWRITTEN = "@pytest_ar"  # a name in code whose asserts pytest has rewritten


class SourceFile:
    """A file of the user's own, and its text, which is read when it is first needed.

    Parameters
    ----------
    path
        The file.
    code
        Code that runs under this file's name. The text is believed only if it gives the same code when it is compiled.

    Attributes
    ----------
    shown
        The path as people read it: relative to the working directory where the file lies below it.
    edited
        Whether the text is not that of the code that ran: the file has changed since, or cannot be read. None: it was
        not needed yet.
    """

    __slots__ = ("_code", "_compiled", "_first", "_inside", "_lines", "_rewritten", "edited", "path", "shown")

    def __init__(self, path: str, code: CodeType) -> None:
        self.path = os.path.abspath(path)
        self.shown = _relative(self.path)
        self.edited: bool | None = None
        self._lines: list[str] | None = None
        # Codes are known by their hashes: kept, they would keep a reloaded module's.
        self._code, self._inside = hash(code), frozenset(map(hash, _codes(code)))
        self._rewritten = any(_REWRITTEN in one.co_names for one in _codes(code))
        self._first = self._mark(code)
        self._compiled: frozenset[object] = frozenset()

    @property
    def lines(self) -> list[str]:
        """Its lines; none where they are not those of the code that ran."""
        if self._lines is None:
            text = self._read()
            self.edited = text is None
            # As Python counts lines; `splitlines` also splits at form feeds.
            self._lines = text.removesuffix("\n").split("\n") if text else []
        return self._lines

    def is_of(self, code: CodeType) -> bool:
        """Whether a code object is of the same version of the file."""
        if code.co_name == "<module>" or hash(code) in self._inside:
            return hash(code) == self._code or code.co_name != "<module>"
        return bool(self.lines) and self._mark(code) in self._compiled

    def _read(self) -> str | None:
        try:
            with tokenize.open(self.path) as file:
                text = file.read()
            compiled = _codes(compile(text, self.path, "exec", dont_inherit=True))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        self._compiled = frozenset(map(self._mark, compiled))
        return text if self._first in self._compiled else None

    def _mark(self, code: CodeType) -> object:
        """By what code is known. pytest puts other code in place of asserts, on the same lines."""
        return (code.co_name, code.co_firstlineno) if self._rewritten else hash(code)


def _relative(path: str) -> str:
    try:
        here = os.getcwd()
    except OSError:
        return path
    for base, file in ((here, path), (os.path.realpath(here), os.path.realpath(path))):
        if file.startswith(base.rstrip(os.sep) + os.sep):
            return os.path.relpath(file, base).replace(os.sep, "/")
    return path


def _codes(code: CodeType) -> Iterator[CodeType]:
    waiting = [code]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(c for c in one.co_consts if isinstance(c, CodeType))


def block_of(code: CodeType, lines: list[str]) -> tuple[str, int]:
    """The text of a function or class, fit to be parsed, and the number of lines of the file before it.

    The whole text for the body of a module. Parsing the function alone keeps the cost of a long file down.
    """
    first = code.co_firstlineno
    if code.co_name == "<module>" or not 0 < first <= len(lines):
        return "\n".join(lines), 0
    try:
        block = inspect.getblock([f"{line}\n" for line in lines[first - 1 :]])
    except (tokenize.TokenError, SyntaxError):
        block = []
    text = "".join(block)
    # An indented block is parsed below a head, rather than dedented, which would change strings over several lines.
    return ("if True:\n" + text, first - 2) if text[:1].isspace() else (text, first - 1)
