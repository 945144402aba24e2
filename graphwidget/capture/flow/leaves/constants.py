"""What a value without a graph was made of, where nothing was cut: of which new tensors, and at which lines.

A loss of ``torch.zeros(1)`` has no graph although no line cut one. So of each value that requires no grad it is
remembered which tensors it goes back to that were made of nothing, or of numbers, and what else lies behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget import torch_internals as internals
from graphwidget.capture.flow.operands import is_index, is_parameter, tensors_in
from graphwidget.model import MeasuredConstant, TextLine

__all__ = ["Constants"]

_MOST_BEHIND = 32  # tensors that one value remembers
_MOST_LOOKS = 30  # times that the variables beside a line are looked up
_MOST_FRAMES = 3
_MOST_NAMES = 3
_MOST_ELEMENTS = 6  # of a container among the variables
_MOST_NODES = 3000
_MOST_NUMBERS = 64

_ZEROS = ("zeros", "zeros_like", "new_zeros")
_ONES = ("ones", "ones_like", "new_ones")
# The position and the name of the numbers among what is given.
_NUMBERS = {
    **dict.fromkeys(("tensor", "as_tensor", "asarray"), (0, "data")),
    "scalar_tensor": (0, "s"),
    "new_tensor": (1, "data"),
    **dict.fromkeys(("full", "full_like"), (1, "fill_value")),
    "new_full": (2, "fill_value"),
}
_DRAWN = frozenset("rand randn randint randperm normal arange linspace logspace eye empty rand_like randn_like".split())
# These bring plain numbers into a tensor; others only scale it, or choose from it.
_BRINGING = frozenset("add radd iadd sub rsub isub fill setitem masked_fill where clamp".split())

Lines = Callable[[], tuple[TextLine, ...]]
Frames = Callable[[], Iterable[FrameType]]


class _Made(NamedTuple):
    """A tensor that was made anew. `n`: how many calls had begun."""

    kind: str
    by: str = ""
    lines: tuple[TextLine, ...] = ()
    single: bool = False
    n: int = 0


_UNSEEN, _FROZEN = _Made("unseen"), _Made("frozen")


class Constants:
    """What the values without a graph were made of, in a program that runs for this purpose.

    Parameters
    ----------
    lines, frames
        The lines of the user's own code that are running, the innermost first, and their frames.
    """

    def __init__(self, lines: Lines, frames: Frames) -> None:
        self._lines, self._frames = lines, frames
        self._behind = WeakTensorKeyDictionary()  # value without a graph -> what it was made of
        self._beside: dict[tuple[tuple[TextLine, ...], str], tuple[tuple[str, ...], ...]] = {}
        self._looks: dict[tuple[tuple[TextLine, ...], str], int] = {}
        self._begun = 0
        self._first = internals.next_number()  # of the nodes that were made since the last call

    def called(self) -> None:
        """A backward call has begun."""
        self._begun += 1
        self._first = internals.next_number()

    def operation(self, by: str, args: Sequence[Any], kwargs: Mapping[str, Any], given: list[Any], result: Any) -> None:
        """An operation has run."""
        plain = by.strip("_")
        if plain == "data" and len(args) == 2:  # ``x.data = y``
            self._behind[args[0]] = self._of([args[1]])
            return
        results = [args[0]] if plain == "setitem" else list(tensors_in((result,)))
        results = [one for one in results if not one.requires_grad and not is_parameter(one)]
        if not results:
            return
        form = by.endswith("_like") or by.startswith("new_")
        if form or not given:
            made = self._made(by, args, kwargs, results[0])
        else:
            made = self._of(given[1:] if plain == "copy" and len(given) > 1 else given)
            if plain in _BRINGING and any(_is_telling(one) for one in (*args, *kwargs.values())):
                made = (*made, _Made("numbers", by, self._lines(), n=self._begun))
        for one in results:
            self._behind[one] = made[-_MOST_BEHIND:]

    def _of(self, given: Iterable[Any]) -> tuple[_Made, ...]:
        """What some tensors were made of. Whole numbers and masks only choose."""
        found: dict[_Made, None] = {}
        for one in given:
            if is_parameter(one):
                found |= {} if one.requires_grad else {_FROZEN: None}
            elif not (one.requires_grad or is_index(one) or one.dtype == torch.bool) or one in self._behind:
                found |= dict.fromkeys(self._behind.get(one, (_UNSEEN,)))
        return tuple(found)

    def _made(self, by: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> tuple[_Made, ...]:
        if is_index(result) and by not in _NUMBERS and by not in _ZEROS:
            return ()
        kind = _kind(by, args, kwargs)
        if kind == "unseen":
            return (_UNSEEN,)
        lines = self._lines()
        if kind in ("zero", "constant") and result.numel() <= _MOST_NUMBERS:
            looked = self._looks[lines, by] = self._looks.get((lines, by), 0) + 1
            if looked <= _MOST_LOOKS:
                self._look(lines, by)
        return (_Made(kind, by, lines, result.dim() == 0, self._begun),)

    def _look(self, lines: tuple[TextLine, ...], by: str) -> None:
        """Look for variables that have a graph of this pass."""
        frames = list(self._frames())[:_MOST_FRAMES]
        if len(frames) > 1 and len(frames) < min(_MOST_FRAMES, len(lines)):
            frames = frames[:1]  # which line the others are at is not known
        found = tuple(_with_graph(frame, self._first) for frame in frames)
        if any(found):
            self._beside[lines, by] = found

    def behind(self, outputs: Iterable[Any]) -> tuple[MeasuredConstant, ...]:
        """What some roots were made of, in the order in which it was made; the same line once."""
        found = {(one.kind, one.lines, one.by): one for one in self._of(outputs)}
        return tuple(
            MeasuredConstant(
                one.kind,
                one.by,
                one.lines,
                one.single,
                one.n == self._begun,
                self._beside.get((one.lines, one.by), ()),
            )
            for one in found.values()
        )


def _kind(by: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """What an operation that was given no tensor made; as `MeasuredConstant.kind`."""
    if by in _ZEROS or by in _ONES:
        return "zero" if by in _ZEROS else "constant"
    if by not in _NUMBERS:
        return "data" if by in _DRAWN else "unseen"
    at, name = _NUMBERS[by]
    numbers = list(_numbers(kwargs.get(name, args[at] if len(args) > at else None)))
    if None in numbers or len(numbers) > _MOST_NUMBERS:
        return "unseen"
    if all(number == 0 for number in numbers):
        return "zero"
    return "constant" if all(number in (0, 1, -1) for number in numbers) else "numbers"


def _numbers(value: Any, depth: int = 6) -> Iterator[float | None]:
    """The numbers in a value; None for what is something else."""
    if isinstance(value, (int, float)):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for one in value:
            yield from _numbers(one, depth - 1)
    else:
        yield None


def _is_telling(value: Any) -> bool:
    """Whether a value is a number that may have been computed from a tensor."""
    return isinstance(value, float) and value not in (0.0, 1.0, -1.0)


def _with_graph(frame: FrameType, first: int) -> tuple[str, ...]:
    """The variables of a frame from which nothing else among them was computed, and whose nodes are no older."""
    found: dict[int, tuple[str, Any]] = {}
    for name, value in _named(frame.f_locals):
        if isinstance(value, torch.Tensor) and value.grad_fn is not None and value.is_floating_point():
            node = value.grad_fn
            if internals.sequence_numbers([node], [type(node)])[0] >= first:
                found.setdefault(id(value), (name, node))
    nodes = [node for _, node in found.values()]
    return tuple(name for name, node in found.values() if not any(_leads(one, node) for one in nodes))[-_MOST_NAMES:]


def _named(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Variables, and then the elements of those that are containers, each as an expression."""
    own = [
        (name, one) for name, one in list(variables.items()) if not name.startswith("_") and name not in ("In", "Out")
    ]
    yield from own
    for name, value in own:
        if type(value) in (list, tuple):
            yield from ((f"{name}[{at}]", one) for at, one in enumerate(value[:_MOST_ELEMENTS]))
        elif type(value) is dict:
            keys = [key for key in value if isinstance(key, str)][:_MOST_ELEMENTS]
            yield from ((f"{name}[{key!r}]", value[key]) for key in keys)


def _leads(start: Any, node: Any) -> bool:
    """Whether a graph goes from one node to another."""
    queue, seen = [start], {start}
    for one in queue:
        for following, _ in one.next_functions:
            if following is node:
                return start is not node
            if following is not None and following not in seen and len(seen) < _MOST_NODES:
                seen.add(following)
                queue.append(following)
    return False
