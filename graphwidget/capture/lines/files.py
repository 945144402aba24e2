"""The text of a file, if it is that of the code that ran: a file may have been edited since it was imported.

So its bytes are read when code of it is first seen, which is when it is imported. They are decoded and compared with
the code when a line of it is needed.
"""

from __future__ import annotations

import ast
import inspect
import io
import os
import tokenize
import weakref
from collections.abc import Iterator
from types import CodeType

__all__ = ["SourceFile", "block_of", "relative"]

MAX_FILE = 4 << 20  # bytes of a file that is read when its code is first seen; a longer one when it is needed
SOME_LINES = 200  # in which the end of a function is looked for at first
MAX_KEPT = 64 << 20  # bytes of all that have been read and were not needed yet
_kept = [0]

# How a name begins in code that others have put in place of a file's own, on the same lines: pytest for its asserts,
# torch.compile for a function whose operations it has compiled.
_REWRITTEN = ("@pytest_ar", "__compiled_fn_")


class SourceFile:
    """A file of the user's own, and its text as it was when its code was first seen.

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
    shift
        What is added to a line of the code to get the line of the text: autoreload compiles single functions.
    """

    __slots__ = ("__weakref__", "_alone", "_bytes", "_code", "_compiled", "_first", "_inside", "_line", "_lines",
                 "_spots", "_stamp", "edited", "path", "shift", "shown")  # fmt: skip

    def __init__(self, path: str, code: CodeType) -> None:
        self.path = os.path.abspath(path)
        self.shown = relative(self.path)
        self.edited: bool | None = None
        self._lines: list[str] | None = None
        # Codes are known by their hashes: kept, they would keep a reloaded module's.
        self._code, self._inside = hash(code), frozenset(map(hash, _codes(code)))
        self._spots = frozenset(map(_spot, _codes(code)))
        self._first, self.shift = _mark(code), 0
        # autoreload compiles a function that was edited alone, or a method in a class with nothing else in it.
        inside = [code] if code.co_flags & inspect.CO_OPTIMIZED else list(_outermost_functions(code))
        self._alone: tuple[str, int] | None = (inside[0].co_name, _shape(inside[0])) if len(inside) == 1 else None
        self._line = inside[0].co_firstlineno if inside else 0
        self._compiled: frozenset[object] = frozenset()
        self._stamp = _stamp(self.path)
        self._bytes = self._read_early()

    def _read_early(self) -> bytes | None:
        """The bytes of the file, if it is not too long and not too much is kept already."""
        size = self._stamp[1] if self._stamp is not None else MAX_FILE
        if size >= MAX_FILE or _kept[0] + size > MAX_KEPT:
            return None
        try:
            with open(self.path, "rb") as file:
                found = file.read()
        except OSError:
            return None
        _kept[0] += len(found)
        weakref.finalize(self, _let_go, len(found)).atexit = False
        return found

    @property
    def changed(self) -> bool:
        """Whether the file on the disk has been edited, or is gone, since its code was first seen."""
        return self._stamp is None or _stamp(self.path) != self._stamp

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
        if _is_rewritten(code) and _spot(code) in self._spots:
            return True
        return bool(self.lines) and _mark(code) in self._compiled

    def _read(self) -> str | None:
        try:
            with io.BytesIO(self._bytes) if self._bytes is not None else open(self.path, "rb") as file:
                encoding, _ = tokenize.detect_encoding(file.readline)
                file.seek(0)
                text = io.TextIOWrapper(file, encoding).read()  # with the ends of lines that Python reads
            compiled = list(_codes(compile(text, self.path, "exec", dont_inherit=True)))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        self._compiled = frozenset({*map(hash, compiled), *map(_spot, compiled)})
        if self._first in self._compiled:
            return text
        same = (
            [one for one in _compiled_alone(text, self._alone[0]) if _shape(one) == self._alone[1]]
            if self._alone
            else []
        )
        self.shift = same[0].co_firstlineno - self._line if len(same) == 1 else 0
        return text if len(same) == 1 else None


def _mark(code: CodeType) -> object:
    """By what code is found in what the text compiles to: where others have put code in its place, by its lines."""
    return _spot(code) if any(map(_is_rewritten, _codes(code))) else hash(code)


def _is_rewritten(code: CodeType) -> bool:
    return any(name.startswith(_REWRITTEN) for name in code.co_names)


def _spot(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


def _shape(code: CodeType) -> int:
    """A number that codes share which do the same on the same lines, wherever they stand.

    autoreload compiles a text without comments: then only the lines from the first one to a comment would be right.
    """
    first = code.co_firstlineno
    inside = tuple(
        (_shape(one), one.co_firstlineno - first) if isinstance(one, CodeType) else repr(one) for one in code.co_consts
    )
    lines = tuple((start, end, line - first) for start, end, line in code.co_lines() if line is not None)
    return hash((code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, inside, lines))


def _compiled_alone(text: str, name: str) -> Iterator[CodeType]:
    """The functions of a name, each compiled as a method alone.

    With other code around them Python may compile them otherwise: a name that is imported there has no methods.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            class_ = ast.parse("class _:\n    pass").body[0]
            class_.body = [node]  # type: ignore[attr-defined]
            code = compile(ast.Module([class_], []), "<alone>", "exec", dont_inherit=True)
            yield from _outermost_functions(code)


def _outermost_functions(code: CodeType) -> Iterator[CodeType]:
    """The functions and methods of a module, without those inside them."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from (one,) if one.co_flags & inspect.CO_OPTIMIZED else _outermost_functions(one)


def _stamp(path: str) -> tuple[int, int] | None:
    """What tells versions of a file apart: when it was written, and its size."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _let_go(size: int) -> None:
    _kept[0] -= size


def relative(path: str) -> str:
    """A path as people read it: relative to the working directory where it lies below it."""
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
    text = "".join(_block(lines, first - 1))
    # An indented block is parsed below a head, rather than dedented, which would change strings over several lines.
    return ("if True:\n" + text, first - 2) if text[:1].isspace() else (text, first - 1)


def _block(lines: list[str], start: int) -> list[str]:
    """The lines of the function or class that begins at a position, with their ends; empty: it has no end."""
    for end in (start + SOME_LINES, len(lines)):  # a file has many functions: the rest of it is not read for each
        some = [f"{line}\n" for line in lines[start:end]]
        try:
            block = inspect.getblock(some)
        except (tokenize.TokenError, SyntaxError):
            continue
        if len(block) < len(some) or end >= len(lines):
            return block
    return []
