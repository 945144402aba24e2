"""Records of the model as JSON and back, told by the types of their fields alone.

A dataclass is an object with the fields that differ from their defaults; a tuple, a frozenset and a column are lists; a
mapping is a list of pairs; None, texts, numbers and truth values are themselves. Reading checks every value against
the type of its field: what does not fit is an error, and a class is only ever one that the type names.
"""

from __future__ import annotations

import types
import typing
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from graphwidget.model import Snapshot, Storages
from graphwidget.record.problems import UnreadableRecord

__all__ = ["Codec"]

_Convert = Callable[[Any], Any]
_PLAIN = (str, int, bool, float)
_MOST_INT = 2**63


T = TypeVar("T")


class _Column(Generic[T]):
    """Stands for `array` in the types of fields."""


class Codec:
    """Converts in both directions.

    Parameters
    ----------
    number_of
        The number under which a snapshot is stored: other records refer to snapshots by it. None: it is not stored.
    snapshot_of
        The snapshot with a number; None: it is not there (any more).
    """

    def __init__(
        self,
        number_of: Callable[[Snapshot], int | None] = lambda snapshot: None,
        snapshot_of: Callable[[int], Snapshot | None] = lambda number: None,
    ) -> None:
        self._number_of, self._snapshot_of = number_of, snapshot_of
        self._writers: dict[Any, _Convert] = {}
        self._readers: dict[Any, _Convert] = {}

    # ------------------------------------------------------------ to JSON

    def write(self, type_: Any, value: Any) -> Any:
        """A value of a type as JSON data."""
        return self._writer(type_)(value)

    def changes(self, value: Any, since: Any) -> dict[str, Any]:
        """The fields of a dataclass that differ from those of another one."""
        type_: Any = type(value)
        hints = _hints(type_)
        found: dict[str, Any] = {}
        for field in fields(value):
            now, then = getattr(value, field.name), getattr(since, field.name)
            if now is not then and now != then:
                found[field.name] = self.write(hints[field.name], now)
        return found

    def _writer(self, type_: Any) -> _Convert:
        found = self._writers.get(type_)
        if found is None:
            self._writers[type_] = lambda value: self._writers[type_](value)  # for a type that contains itself
            try:
                found = self._writers[type_] = self._make_writer(type_)
            except BaseException:
                del self._writers[type_]
                raise
        return found

    def _make_writer(self, type_: Any) -> _Convert:
        if type_ is Snapshot:
            return self._number_of
        origin, inner = get_origin(type_), get_args(type_)
        if origin in (Union, types.UnionType):
            (one,) = (arg for arg in inner if arg is not type(None))
            write = self._writer(one)
            return lambda value: None if value is None else write(value)
        if type_ in _PLAIN or origin is Literal:
            return lambda value: value
        if origin is _Column or type_ in (bytearray, frozenset[str]):
            return list
        if isinstance(type_, type) and issubclass(type_, IntEnum):
            return int
        if type_ is Storages:
            pairs = self._writer(Mapping[int, tuple[str, ...]])
            return lambda value: [list(value.key), list(value.bytes), pairs(value.owners)]
        if origin is tuple and inner[-1:] == (Ellipsis,):
            write = self._writer(inner[0])
            return lambda value: [write(one) for one in value]
        if origin is tuple or _is_row(type_):
            writers = [self._writer(one) for one in inner or _hints(type_).values()]
            return lambda value: [write(one) for write, one in zip(writers, value, strict=True)]
        if origin is not None and issubclass(origin, Mapping):
            key, value_ = (self._writer(one) for one in inner)
            return lambda value: [[key(k), value_(v)] for k, v in value.items()]
        if is_dataclass(type_):
            return self._object_writer(type_)
        raise TypeError(f"no form in JSON is known for {type_}")

    def _object_writer(self, type_: Any) -> _Convert:
        hints = _hints(type_)
        plan = [(f.name, self._writer(hints[f.name]), f.default, f.default_factory) for f in fields(type_)]

        def write(value: Any) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for name, convert, default, factory in plan:
                one = getattr(value, name)
                if one is default or one == (default if factory is MISSING else factory()):
                    continue
                found[name] = convert(one)
            return found

        return write

    # ------------------------------------------------------------ from JSON

    def read(self, type_: Any, data: Any) -> Any:
        """A value of a type from JSON data.

        Raises
        ------
        UnreadableRecord
            If the data are not of that form.
        """
        return self._reader(type_)(data)

    def changed(self, value: Any, data: Any) -> Any:
        """A dataclass with other values in the fields that `changes` wrote."""
        type_ = type(value)
        names = {field.name for field in fields(type_)}
        was = {name: getattr(value, name) for name in names}
        return type_(**{**was, **self._fields(type_, data)})

    def _reader(self, type_: Any) -> _Convert:
        found = self._readers.get(type_)
        if found is None:
            self._readers[type_] = lambda data: self._readers[type_](data)
            try:
                found = self._readers[type_] = self._make_reader(type_)
            except BaseException:
                del self._readers[type_]
                raise
        return found

    def _make_reader(self, type_: Any) -> _Convert:
        if type_ is Snapshot:
            number = self._reader(int)
            return lambda data: None if data is None else self._snapshot_of(number(data))
        origin, inner = get_origin(type_), get_args(type_)
        if origin in (Union, types.UnionType):
            (one,) = (arg for arg in inner if arg is not type(None))
            read = self._reader(one)
            return lambda data: None if data is None else read(data)
        if type_ in _PLAIN:
            return _plain_reader(type_)
        if origin is Literal:
            return lambda data: data if isinstance(data, str) and data in inner else _misfit(str)
        if origin is _Column:
            raise TypeError("the code of an array's type is that of the field's default")
        if type_ is bytearray:
            return lambda data: _column(bytearray, data)
        if type_ == frozenset[str]:
            items = self._reader(tuple[str, ...])
            return lambda data: frozenset(items(data))
        if isinstance(type_, type) and issubclass(type_, IntEnum):
            return lambda data: type_(data) if type(data) is int and data in set(type_) else _misfit(type_)
        if type_ is Storages:
            return self._storages_reader()
        if origin is tuple and inner[-1:] == (Ellipsis,):
            read = self._reader(inner[0])
            return lambda data: tuple([read(one) for one in _list(data)])
        if origin is tuple or _is_row(type_):
            readers = [self._reader(one) for one in inner or _hints(type_).values()]
            make = type_._make if _is_row(type_) else tuple
            return lambda data: make([read(one) for read, one in zip(readers, _list(data, len(readers)))])
        if origin is not None and issubclass(origin, Mapping):
            key, value = (self._reader(one) for one in inner)
            return lambda data: {key(pair[0]): value(pair[1]) for pair in map(_pair, _list(data))}
        if is_dataclass(type_):
            return lambda data: self._made(type_, data)
        raise TypeError(f"no form in JSON is known for {type_}")

    def _made(self, type_: Any, data: Any) -> Any:
        try:
            return type_(**self._fields(type_, data))
        except TypeError as error:  # a field without a default is missing
            raise UnreadableRecord(f"a {type_.__name__} is incomplete ({error})") from None

    def _fields(self, type_: Any, data: Any) -> dict[str, Any]:
        """The values of an object's fields. Those that this version does not know are left out."""
        if not isinstance(data, dict):
            _misfit(type_)
        readers = self._field_readers(type_)
        return {name: readers[name](one) for name, one in data.items() if name in readers}

    def _field_readers(self, type_: Any) -> dict[str, _Convert]:
        key = ("fields", type_)
        found: Any = self._readers.get(key)
        if found is None:
            hints = _hints(type_)
            found = {}
            for field in fields(type_):
                if get_origin(hints[field.name]) is _Column:
                    assert field.default_factory is not MISSING, field
                    found[field.name] = _array_reader(field.default_factory().typecode)
                else:
                    found[field.name] = self._reader(hints[field.name])
            self._readers[key] = found
        return typing.cast(dict[str, _Convert], found)

    def _storages_reader(self) -> _Convert:
        numbers, owners = _array_reader("q"), self._reader(Mapping[int, tuple[str, ...]])

        def read(data: Any) -> Storages:
            key, bytes_, paths = _list(data, 3)
            found = Storages(numbers(key), numbers(bytes_), owners(paths))
            if len(found.key) != len(found.bytes):
                _misfit(Storages)
            return found

        return read


@cache
def _hints(type_: Any) -> dict[str, Any]:
    # Before Python 3.12 `array[int]` may be written, but not evaluated.
    return get_type_hints(type_, localns={"array": _Column})


def _is_row(type_: Any) -> bool:
    """A NamedTuple."""
    return isinstance(type_, type) and issubclass(type_, tuple) and hasattr(type_, "_fields")


def _plain_reader(type_: type) -> _Convert:
    if type_ is int:
        return lambda data: data if type(data) is int and -_MOST_INT <= data < _MOST_INT else _misfit(int)
    if type_ is float:
        return lambda data: float(data) if type(data) in (int, float) else _misfit(float)
    if type_ is str:
        return lambda data: _text(data) if type(data) is str else _misfit(str)
    return lambda data: data if type(data) is type_ else _misfit(type_)


# A terminal obeys control characters, and a record may come from anybody.
_CONTROLS = {code: "\ufffd" for code in (*range(32), 127, *range(128, 160)) if chr(code) not in "\n\t"}


def _text(text: str) -> str:
    return text if text.isprintable() else text.translate(_CONTROLS)


def _array_reader(code: str) -> _Convert:
    return lambda data: _column(lambda numbers: array(code, numbers), data)


def _column(make: _Convert, data: Any) -> Any:
    try:
        return make(_list(data))
    except (TypeError, ValueError, OverflowError):
        _misfit(list)


def _list(data: Any, length: int | None = None) -> Sequence[Any]:
    if not isinstance(data, list) or (length is not None and len(data) != length):
        _misfit(list)
    return typing.cast(Sequence[Any], data)


def _pair(data: Any) -> Sequence[Any]:
    return _list(data, 2)


def _misfit(type_: Any) -> Any:
    raise UnreadableRecord(f"a value in it is no {getattr(type_, '__name__', type_)}")
