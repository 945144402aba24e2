"""What hooks for saved tensors give back, compared with what they were given.

Hooks of the program's own (`torch.autograd.graph.saved_tensors_hooks`) are put into others that note the type, the
shape and the device on both ways, of every node that asks for what it saved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.owners.reading import code_of
from graphwidget.model import MeasuredUnpacked, TensorForm, TextLine

__all__ = ["UnpackedTensors"]

_MOST_CALLS = 50  # of which it is remembered what was given back

Lines = Callable[[], tuple[TextLine, ...]]


@dataclass(frozen=True)
class _Packed:
    """What a program's hook has returned, with what it was given."""

    value: Any
    given: TensorForm


@dataclass(frozen=True)
class _Pair:
    """The two hooks, as in `MeasuredUnpacked`."""

    pack: TextLine | None
    unpack: TextLine | None
    pack_name: str
    unpack_name: str
    lines: tuple[TextLine, ...]


class UnpackedTensors:
    """Told of calls; it sees by itself what hooks do.

    Parameters
    ----------
    lines
        The lines of the user's own code that are running, the innermost first.
    line_of
        The first line of a function of the user's own; None: it is another's.
    """

    def __init__(self, lines: Lines, line_of: Callable[[CodeType], TextLine | None]) -> None:
        self._lines, self._line_of = lines, line_of
        self._call = -1
        self._last: dict[int, tuple[int, MeasuredUnpacked]] = {}  # call -> number of the node that asked last, ...

    def begin(self) -> None:
        """Watch from now on, for the rest of the process."""
        hooks = torch.autograd.graph.saved_tensors_hooks
        made = hooks.__init__

        @functools.wraps(made)
        def init(one: Any, pack_hook: Any, unpack_hook: Any, *args: Any, **kwargs: Any) -> None:
            pair = self._pair(pack_hook, unpack_hook)
            if pair is not None:
                pack_hook, unpack_hook = _packing(pack_hook), self._unpacking(unpack_hook, pair)
            made(one, pack_hook, unpack_hook, *args, **kwargs)

        hooks.__init__ = init  # type: ignore[method-assign]

    def called(self, n: int) -> None:
        """The call n begins."""
        self._call = n

    def found(self) -> tuple[MeasuredUnpacked, ...]:
        """What was given back, for the last node that asked, of each of the last calls."""
        return tuple(one for _, one in self._last.values())

    def _pair(self, *hooks: Any) -> _Pair | None:
        """What is known of two hooks; None: neither is the program's own, or that cannot be known."""
        try:
            codes = [code_of(one) for one in hooks]
            pack, unpack = (self._line_of(code) if code is not None else None for code in codes)
            if pack is None and unpack is None:
                return None
            return _Pair(pack, unpack, *map(_name_of, hooks), self._lines())
        except Exception:  # what is not known is not told
            return None

    def _unpacking(self, hook: Any, pair: _Pair) -> Any:
        def unpack(packed: Any) -> Any:
            if type(packed) is not _Packed:  # packed by another pair
                return hook(packed)
            result = hook(packed.value)
            try:
                self._note(pair, packed.given, _form(result))
            except Exception:  # a tensor of a kind of its own
                pass
            return result

        return unpack

    def _note(self, pair: _Pair, given: TensorForm, returned: TensorForm) -> None:
        node = internals.current_node()
        if node is None:  # read by the program outside of a call
            return
        number = internals.number_of(node)
        before = self._last.get(self._call)
        if before is not None and before[0] == number and before[1].given != before[1].returned:
            return
        what = pair.pack, pair.unpack, pair.pack_name, pair.unpack_name, pair.lines
        self._last[self._call] = number, MeasuredUnpacked(self._call, internals.name_of(node), given, returned, *what)
        while len(self._last) > _MOST_CALLS:
            del self._last[next(iter(self._last))]


def _packing(hook: Any) -> Any:
    def pack(tensor: Any) -> Any:
        given = _form(tensor)  # a hook may change the tensor
        return _Packed(hook(tensor), given)

    return pack


def _form(one: Any) -> TensorForm:
    """What something is, without its values."""
    with internals.quiet():
        if not internals.is_tensor(one):
            return TensorForm(other=type(one).__name__)
        return TensorForm(internals.dtype_name(one), internals.shape_of(one), str(one.device))


def _name_of(hook: Any) -> str:
    while isinstance(hook, functools.partial):
        hook = hook.func
    name = getattr(hook, "__qualname__", type(hook).__qualname__).rpartition("<locals>.")[2]
    return "" if "<" in name else name
