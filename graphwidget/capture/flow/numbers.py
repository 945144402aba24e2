"""Numbers that were taken out of tensors, and what Python computes from them: they remember where they come from.

``total = total + loss.item() * weight`` and then ``torch.tensor(total)``: no operation of torch sees the sum. So where
a program runs once more to be measured, `item` and `tolist` return numbers that carry the cuts before them through
Python's arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["carrying", "cuts_in", "numbers_in"]

_OPERATIONS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_OF_ONE = ("neg", "pos", "abs")


class _Taken(float):
    """A float that carries cuts."""

    __slots__ = ("cuts",)
    cuts: tuple[Any, ...]

    def __reduce_ex__(self, protocol: Any) -> tuple[type[float], tuple[float]]:
        """Copied, saved or sent elsewhere, it is a plain number: a program may do that with what `item` returns."""
        return float, (float(self),)


def _of(value: Any, cuts: Iterable[Any]) -> Any:
    found = _Taken(value)
    found.cuts = tuple(dict.fromkeys(cuts))
    return found


def _computing(name: str) -> Callable[..., Any]:
    operation = getattr(float, name)

    def compute(self: _Taken, *others: Any) -> Any:
        result = operation(self, *others)
        if type(result) is not float:  # the other one is a tensor, which computes it, or the result is complex
            return result
        return _of(result, (*self.cuts, *(cut for one in others for cut in getattr(one, "cuts", ()))))

    compute.__name__ = name
    return compute


for _name in (*_OF_ONE, *_OPERATIONS, *(f"r{one}" for one in _OPERATIONS)):
    setattr(_Taken, f"__{_name}__", _computing(f"__{_name}__"))


def carrying(value: Any, cuts: tuple[Any, ...]) -> Any:
    """What ``item`` or ``tolist`` returned, its floats with cuts. Whole numbers, as indices, stay as they are."""
    if type(value) is float:
        return _of(value, cuts)
    return [carrying(one, cuts) for one in value] if isinstance(value, list) else value


def cuts_in(value: Any) -> Iterator[Any]:
    """The cuts that the numbers in a value carry."""
    for number in _floats(value):
        yield from getattr(number, "cuts", ())


def numbers_in(value: Any) -> Iterator[float]:
    """The numbers in a value by which others may be known: a program has many zeros and ones, which tell nothing."""
    return (number for number in _floats(value) if number not in (0.0, 1.0, -1.0))


def _floats(value: Any, depth: int = 6) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for one in value:
            yield from _floats(one, depth - 1)
    elif depth and isinstance(value, dict):
        yield from _floats(list(value.values()), depth)
