"""Reading plans: which parts an object of each type has, and how the search iterates over them.

There is one `Plan` per type. A `Reader` iterates over one part of one object (its elements, its attributes, its
closure) as pairs of key and child, and spells the path of each child. Containers are read with the methods of the base
class (`list.__iter__`), so no user code runs.
"""

from __future__ import annotations

import functools
import gc
import logging
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.owners.reading import (
    CO_OPTIMIZED,
    READABLE_DUNDERS,
    REGISTRIES,
    class_dict,
    dict_getter,
    locals_of,
    member_descriptors,
    module_of,
    mro_of,
    own_attributes,
    static_attribute,
)
from graphwidget.capture.owners.spelling import (
    Spelling,
    by_arrow,
    by_attribute,
    by_child,
    by_closure,
    by_default,
    by_frame,
    by_index,
    by_key,
    by_nothing,
    by_position,
    by_registry,
    by_traceback,
)

__all__ = ["ATOMS", "CONTAINED", "HIDDEN", "OPTIMIZER", "PLAIN", "REGISTERED", "Plan", "Reader", "plan_for", "sample"]

HAVE_GC = 1 << 14
# `logging.Manager` leads to the loggers of all libraries. A logger that a program has leads to its own parents.
ATOMS = frozenset({
    int, float, complex, bool, str, bytes, bytearray, type(None), range, slice, memoryview,
    type(Ellipsis), type(NotImplemented),
    types.BuiltinFunctionType, types.CodeType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType, types.FrameType,
    torch.dtype, torch.device, torch.Size, logging.Manager,
})  # fmt: skip
SKIPPED_PACKAGES = frozenset(
    "IPython asyncio comm graphwidget ipykernel jupyter_client matplotlib numpy pandas plotly tornado traitlets "
    "zmq".split()
)
SKIPPED_MODULES = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch._subclasses", "torch.fx")
EMPTY_MAYBE = frozenset({dict, OrderedDict, list, tuple, set})
# How well a step reads as part of a name, the best first: a parameter, buffer or submodule that a module registered;
# an attribute; an element of a container; a place that no expression reaches, or none that people write; the inside of
# an optimizer.
REGISTERED, PLAIN, CONTAINED, HIDDEN, OPTIMIZER = range(5)
_TIERS = {"element": CONTAINED, "closure": HIDDEN, "generator": HIDDEN, "hook": HIDDEN, "other": HIDDEN}
_flags = type.__dict__["__flags__"].__get__


class Reader:
    """One part of one object: its pairs of (key, child), the spelling of their paths, and how well a path reads."""

    __slots__ = ("kind", "pairs", "spell", "tier", "total")

    def __init__(
        self, pairs: Iterator[tuple[Any, Any]], spell: Spelling, kind: str, total: int = 0, tier: int | None = None
    ) -> None:
        self.pairs, self.spell, self.kind, self.total = pairs, spell, kind, total
        self.tier = _TIERS.get(kind, PLAIN) if tier is None else tier


class Plan:
    """How instances of one type are read.

    `skip`: they hold nothing. `tensor`: they are tensors. `simple`: `gc.get_referents` lists everything they hold.
    `is_class`: they are classes. `is_module`: they are torch's modules.
    """

    __slots__ = ("is_class", "is_module", "readers", "simple", "skip", "tensor")

    def __init__(
        self,
        readers: Callable[[Any], list[Reader]] | None = None,
        *,
        tensor: bool = False,
        simple: bool = False,
        is_class: bool = False,
        is_module: bool = False,
    ) -> None:
        self.skip = readers is None
        self.readers = readers or (lambda o: [])
        self.tensor, self.simple, self.is_class, self.is_module = tensor, simple, is_class, is_module


def plan_for(cls: type) -> Plan:
    """Return the plan for instances of `cls`."""
    mro = mro_of(cls)
    if torch.Tensor in mro:
        return Plan(of_tensor, tensor=True)
    if cls in ATOMS or not _flags(cls) & HAVE_GC or types.ModuleType in mro or weakref.ReferenceType in mro:
        return Plan()
    if type in mro:
        return Plan(of_class, is_class=True)
    if torch.nn.Module in mro:
        return Plan(functools.partial(of_module, static_attribute(cls, "__getitem__")), is_module=True)
    special = SPECIAL.get(cls)
    if special is not None:
        return Plan(special)
    module = module_of(cls)
    if module.partition(".")[0] in SKIPPED_PACKAGES or module.startswith(SKIPPED_MODULES):
        return Plan()
    parts: list[Callable[[Any], list[Reader]]] = [read for base, read in CONTAINERS.items() if base in mro]
    if cls not in CONTAINERS:
        getter = dict_getter(cls)
        members = {} if tuple in mro else member_descriptors(cls)
        if getter is not None or members:
            parts.append(functools.partial(of_attributes, getter, members))
        if BaseException in mro:
            parts.append(of_exception)
        if not parts or cls is functools._lru_cache_wrapper:
            parts.append(of_opaque)
        if torch.optim.Optimizer in mro:
            return Plan(functools.partial(of_optimizer, parts))
        if parts and parts[0] is not of_opaque and len(parts) == 1:
            return Plan(parts[0], simple=True)
    return Plan(parts[0] if len(parts) == 1 else lambda o: [reader for part in parts for reader in part(o)])


def of_list(o: Any) -> list[Reader]:
    return [Reader(zip(count(), list.__iter__(o)), by_index, "element", list.__len__(o))]


def of_tuple(o: Any) -> list[Reader]:
    return [Reader(zip(count(), tuple.__iter__(o)), by_index, "element", tuple.__len__(o))]


def of_deque(o: Any) -> list[Reader]:
    return [Reader(zip(count(), deque.__iter__(o)), by_index, "element", deque.__len__(o))]


def of_set(o: Any) -> list[Reader]:
    return [Reader(zip(count(), set.__iter__(o)), by_position, "element", set.__len__(o), HIDDEN)]


def of_frozenset(o: Any) -> list[Reader]:
    return [Reader(zip(count(), frozenset.__iter__(o)), by_position, "element", frozenset.__len__(o), HIDDEN)]


def of_dict(o: Any) -> list[Reader]:
    total = dict.__len__(o)
    if not total:
        return []
    readers = [Reader(iter(dict.items(o)), by_key, "element", total)]
    if any(type(key) not in ATOMS for key in islice(dict.__iter__(o), 10)):
        readers.append(Reader(zip(count(), dict.__iter__(o)), by_position, "element", total, HIDDEN))
    return readers


CONTAINERS: dict[type, Callable[[Any], list[Reader]]] = {
    list: of_list,
    tuple: of_tuple,
    deque: of_deque,
    set: of_set,
    frozenset: of_frozenset,
    dict: of_dict,
}


def sample(o: Any, n: int) -> list[Any] | None:
    """Return about `n` elements spread over a long container; None if it cannot be sampled."""
    mro = mro_of(type(o))
    if list in mro or tuple in mro:
        base = list if list in mro else tuple
        total = base.__len__(o)
        places = [*range(0, total, max(1, total // n)), total - 1]
        try:
            return [base.__getitem__(o, at) for at in places]
        except IndexError:  # another thread made it shorter
            return None
    if dict in mro:
        return list(islice(reversed(dict.values(o)), n))
    return None


def of_attributes(getter: Callable[[Any], Any] | None, members: dict[str, Any], o: Any) -> list[Reader]:
    pairs: list[tuple[str, Any]] = []
    for name, member in members.items():
        try:
            pairs.append((name, member.__get__(o)))
        except AttributeError:  # a slot that was never set
            pass
    readers = [Reader(iter(pairs), by_attribute, "attribute")] if pairs else []
    if getter is not None:
        attributes = getter(o)
        if attributes:
            readers.append(Reader(iter(dict.items(attributes)), by_attribute, "attribute", len(attributes)))
    return readers


def of_module(item: Any, o: Any) -> list[Reader]:
    """Read parameters, buffers and submodules by the names that users write; then all other attributes.

    `item` is the class's `__getitem__`: it decides how children are spelled.
    """
    own = own_attributes(o)
    readers = []
    for registry in REGISTRIES:
        entries = own.get(registry)
        if entries is not None and dict in mro_of(type(entries)) and dict.__len__(entries):
            if registry == "_modules":
                children = [((at, key), child) for at, (key, child) in enumerate(dict.items(entries))]
                spell = functools.partial(by_child, item)
                readers.append(Reader(iter(children), spell, "attribute", len(children), REGISTERED))
            else:
                spell = functools.partial(by_registry, registry, item)
                readers.append(Reader(iter(dict.items(entries)), spell, "attribute", tier=REGISTERED))
    scripted = _original(own.get("forward"))
    if scripted is not None:
        readers.append(Reader(iter([("", scripted)]), by_nothing, "attribute", tier=REGISTERED))
    plain: list[tuple[str, Any]] = []
    hooks: list[tuple[str, Any]] = []
    for name, value in own.items():
        cls = type(value)
        if cls in ATOMS or name in REGISTRIES or (cls in EMPTY_MAYBE and not value):
            continue
        (hooks if name.endswith("_hooks") else plain).append((name, value))
    if plain:
        readers.append(Reader(iter(plain), by_attribute, "attribute"))
    if hooks:
        readers.append(Reader(iter(hooks), by_attribute, "hook"))
    return readers


def _original(forward: Any) -> torch.nn.Module | None:
    """The module that was scripted (`torch.jit.script`): its parts are those of the script, by the same names."""
    wrapped = own_attributes(forward).get("__wrapped__") if forward is not None else None
    owner: Any = wrapped.__self__ if type(wrapped) is types.MethodType else None
    return owner if owner is not None and torch.nn.Module in mro_of(type(owner)) else None


def of_optimizer(parts: list[Callable[[Any], list[Reader]]], o: Any) -> list[Reader]:
    """Read an optimizer with the lowest rank: its parameters have better names elsewhere."""
    readers = [reader for part in parts for reader in part(o)]
    for reader in readers:
        reader.tier = OPTIMIZER
    return readers


def of_class(o: Any) -> list[Reader]:
    named = class_dict(o).items()
    values = [(k, v) for k, v in named if k[:2] != "__" or k in READABLE_DUNDERS or type(v) is types.FunctionType]
    return [Reader(iter(values), by_attribute, "attribute")]


def of_opaque(o: Any) -> list[Reader]:
    """Read a C object without attributes (an iterator, a view, a cache). No expression names its contents."""
    referents = [r for r in gc.get_referents(o) if type(r) is not type]
    return [Reader(enumerate(referents), by_arrow, "other", len(referents))]


def of_function(o: types.FunctionType) -> list[Reader]:
    readers = []
    if o.__closure__:
        cells = [(n, c.cell_contents) for n, c in zip(o.__code__.co_freevars, o.__closure__, strict=True) if _full(c)]
        readers.append(Reader(iter(cells), by_closure, "closure"))
    if o.__defaults__:
        last = o.__code__.co_varnames[: o.__code__.co_argcount][-len(o.__defaults__) :]
        readers.append(Reader(zip(last, o.__defaults__, strict=False), by_default, "closure"))
    if o.__kwdefaults__:
        readers.append(Reader(iter(list(o.__kwdefaults__.items())), by_default, "closure"))
    if o.__dict__:
        readers.append(Reader(iter(list(o.__dict__.items())), by_attribute, "attribute"))
    return readers


def _full(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _of_frame(attribute: str, o: Any) -> list[Reader]:
    frame = getattr(o, attribute)
    if frame is None:
        return []
    return [Reader(iter(locals_of(frame)), functools.partial(by_frame, attribute), "generator")]


def of_traceback(o: types.TracebackType) -> list[Reader]:
    """Read the locals of all function frames. A name that two frames use gets the function's name as a prefix."""
    pairs: list[tuple[str, Any]] = []
    taken: set[str] = set()
    at: types.TracebackType | None = o
    while at is not None:
        code = at.tb_frame.f_code
        if code.co_flags & CO_OPTIMIZED:
            for name, value in locals_of(at.tb_frame):
                pairs.append((f"{code.co_name}:{name}" if name in taken else name, value))
                taken.add(name)
        at = at.tb_next
    return [Reader(iter(pairs), by_traceback, "traceback", len(pairs))]


def of_exception(o: BaseException) -> list[Reader]:
    parts = ("__traceback__", "args", "__cause__", "__context__")
    pairs = [(name, BaseException.__dict__[name].__get__(o)) for name in parts]
    return [Reader(iter(pairs), by_attribute, "attribute")]


SPECIAL: dict[type, Callable[[Any], list[Reader]]] = {
    types.FunctionType: of_function,
    types.TracebackType: of_traceback,
    types.GeneratorType: functools.partial(_of_frame, "gi_frame"),
    types.CoroutineType: functools.partial(_of_frame, "cr_frame"),
    types.AsyncGeneratorType: functools.partial(_of_frame, "ag_frame"),
}


def of_tensor(o: torch.Tensor) -> list[Reader]:
    """Read the `.grad` (it may have a graph itself), and the attributes and hooks that user code set."""
    readers = []
    readable = internals.requires_grad(o) and not internals.maybe_stale_view(o)
    if readable and (internals.is_leaf(o) or internals.retains_grad(o)):  # torch warns when any other `.grad` is read
        grad = internals.grad(o)
        if grad is not None:
            readers.append(Reader(iter([("grad", grad)]), by_attribute, "grad"))
    if len(gc.get_referents(o)) > 1:  # more than its type
        attributes = own_attributes(o)
        if attributes:
            readers.append(Reader(iter(list(dict.items(attributes))), by_attribute, "attribute"))
        hooks = [(name, read(o)) for name, read in internals.hook_registries.items()]
        readers.append(Reader(iter(hooks), by_attribute, "hook"))
    return readers
