"""How to look into any Python object without running a line of its code.

A `Plan` says, per type, how instances are read; a `Reader` walks one part of one object (its
elements, its attributes, its closure) as pairs of key and child, and can spell the path of a child.
Types are told by their MRO, never by `isinstance` (which asks `__class__`); contents are read with
the base class's own methods (`list.__iter__`) and with C descriptors (`__dict__`, `__slots__`).
"""

from __future__ import annotations

import functools
import gc
import keyword
import sys
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import count, islice
from math import isfinite
from typing import Any

import torch

from graphwidget import torch_internals as internals

__all__ = [
    "CONTAINED",
    "HIDDEN",
    "OPTIMIZER",
    "PLAIN",
    "REGISTERED",
    "Plan",
    "Reader",
    "Spelling",
    "is_leaf",
    "locals_of",
    "module_of",
    "mro_of",
    "plan_for",
    "sample",
]

# (path of the owner, key, owner) -> (path, whether it is an expression)
Spelling = Callable[[str, Any, Any], "tuple[str, bool]"]

HELD_BY_FRAME_AND_US = 3  # references to a dict of locals: the frame's, ours and the argument of getrefcount
CO_OPTIMIZED = 0x1  # a function's frame: its locals are not a namespace
HAVE_GC = 1 << 14
ATOMS = frozenset({
    int, float, complex, bool, str, bytes, bytearray, type(None), range, slice, memoryview,
    type(Ellipsis), type(NotImplemented),
    types.BuiltinFunctionType, types.CodeType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType, types.FrameType,
    torch.dtype, torch.device, torch.Size,
})  # fmt: skip
SKIPPED_PACKAGES = frozenset(
    "IPython asyncio comm concurrent graphwidget ipykernel jupyter_client logging matplotlib numpy pandas "
    "plotly threading tornado traitlets zmq".split()
)
SKIPPED_MODULES = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch._subclasses", "torch.fx")
READABLE_DUNDERS = frozenset({"__self__", "__func__", "__wrapped__"})
EMPTY_MAYBE = frozenset({dict, OrderedDict, list, tuple, set})
REGISTRIES = ("_parameters", "_buffers", "_modules")

# How a step of a path is liked as part of a name, the best first: a name that a module gave to a parameter, a buffer
# or a part of its own; an attribute; an element; what no expression, or none that anybody writes, leads to; what an
# optimizer has inside.
REGISTERED, PLAIN, CONTAINED, HIDDEN, OPTIMIZER = range(5)
_TIERS = {"element": CONTAINED, "closure": HIDDEN, "generator": HIDDEN, "hook": HIDDEN, "other": HIDDEN}

_mro = type.__dict__["__mro__"].__get__
_flags = type.__dict__["__flags__"].__get__
_module = type.__dict__["__module__"].__get__
_class_dict = type.__dict__["__dict__"].__get__


def mro_of(cls: type) -> tuple[type, ...]:
    return _mro(cls)  # type: ignore[no-any-return]


def module_of(cls: type) -> str:
    """Name of the module that defines `cls`."""
    try:
        name = _module(cls)
    except AttributeError:
        return ""
    return name if type(name) is str else ""


def static_attribute(cls: type, name: str) -> Any:
    """What the class or a base of it defines as `name`, no descriptor called; None when it does not."""
    for base in mro_of(cls):
        found = _class_dict(base).get(name)
        if found is not None:
            return found
    return None


class Reader:
    """One part of one object: pairs of (key, child), how a child's path is spelled, and how well that names it."""

    __slots__ = ("kind", "pairs", "spell", "tier", "total")

    def __init__(
        self, pairs: Iterator[tuple[Any, Any]], spell: Spelling, kind: str, total: int = 0, tier: int | None = None
    ) -> None:
        self.pairs, self.spell, self.kind, self.total = pairs, spell, kind, total
        self.tier = _TIERS.get(kind, PLAIN) if tier is None else tier


class Plan:
    """How instances of one type are read.

    `skip`: they hold nothing. `tensor`: they are tensors. `simple`: ordinary objects, all of whose
    contents `gc.get_referents` lists. `is_class`: they are classes.
    """

    __slots__ = ("is_class", "readers", "simple", "skip", "tensor")

    def __init__(
        self,
        readers: Callable[[Any], list[Reader]] | None = None,
        *,
        tensor: bool = False,
        simple: bool = False,
        is_class: bool = False,
    ) -> None:
        self.skip = readers is None
        self.readers = readers or (lambda o: [])
        self.tensor, self.simple, self.is_class = tensor, simple, is_class


def plan_for(cls: type) -> Plan:
    mro = mro_of(cls)
    if torch.Tensor in mro:
        return Plan(of_tensor, tensor=True)
    if cls in ATOMS or not _flags(cls) & HAVE_GC or types.ModuleType in mro or weakref.ReferenceType in mro:
        return Plan()
    if type in mro:
        return Plan(of_class, is_class=True)
    if torch.nn.Module in mro:
        return Plan(functools.partial(of_module, dict_getter(cls), static_attribute(cls, "__getitem__")))
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


# ---------------------------------------------------------------- containers


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
    """About `n` elements from all over a long container; None when it cannot be sampled."""
    mro = mro_of(type(o))
    if list in mro or tuple in mro:
        base = list if list in mro else tuple
        total = base.__len__(o)
        places = [*range(0, total, max(1, total // n)), total - 1]
        try:
            return [base.__getitem__(o, at) for at in places]
        except IndexError:  # it shrank meanwhile
            return None
    if dict in mro:
        return list(islice(reversed(dict.values(o)), n))
    return None


# ---------------------------------------------------------------- objects


def dict_getter(cls: type) -> Callable[[Any], Any] | None:
    """The C getter of `__dict__`, past any property of that name."""
    for base in mro_of(cls):
        found = _class_dict(base).get("__dict__")
        if type(found) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            return found.__get__
    return None


def own_attributes(o: Any) -> dict[str, Any]:
    """`vars(o)` past any property of that name; empty when it has none."""
    getter = dict_getter(type(o))
    return getter(o) if getter else {}


def attribute(o: Any, name: str) -> Any:
    """`o.name` where it is stored in the object itself or in a module's registries; else None."""
    own = own_attributes(o)
    if name in own:
        return own[name]
    for registry in REGISTRIES:
        entries = own.get(registry)
        if type(entries) is dict and name in entries:
            return entries[name]
    slot = static_attribute(type(o), name)
    if type(slot) is types.MemberDescriptorType:
        try:
            return slot.__get__(o)
        except AttributeError:
            return None
    return None


def member_descriptors(cls: type) -> dict[str, Any]:
    """Slots: `__slots__` of Python classes and the object members of C types."""
    found: dict[str, Any] = {}
    for base in mro_of(cls):
        for name, value in _class_dict(base).items():
            if type(value) is types.MemberDescriptorType and (not name.startswith("__") or name in READABLE_DUNDERS):
                found.setdefault(name, value)
    return found


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


def of_module(getter: Callable[[Any], Any], item: Any, o: Any) -> list[Reader]:
    """Parameters, buffers and submodules by the names a user writes; then what else the module carries.

    `item`: what the class defines as `__getitem__`, which tells how its children are written.
    """
    own: dict[str, Any] = getter(o)
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
    plain, hooks = [], []
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


def of_optimizer(parts: list[Callable[[Any], list[Reader]]], o: Any) -> list[Reader]:
    """The parameters that it was given have better names elsewhere."""
    readers = [reader for part in parts for reader in part(o)]
    for reader in readers:
        reader.tier = OPTIMIZER
    return readers


def of_class(o: Any) -> list[Reader]:
    values = [(k, v) for k, v in _class_dict(o).items() if not k.startswith("__") or k in READABLE_DUNDERS]
    return [Reader(iter(values), by_attribute, "attribute")]


def of_opaque(o: Any) -> list[Reader]:
    """C objects without attributes: iterators, views, caches. No expression names what they hold."""
    referents = [r for r in gc.get_referents(o) if type(r) is not type]
    return [Reader(enumerate(referents), by_arrow, "other", len(referents))]


# ---------------------------------------------------------------- code: functions, generators, errors


def of_function(o: types.FunctionType) -> list[Reader]:
    readers = []
    if o.__closure__:
        cells = [(n, c.cell_contents) for n, c in zip(o.__code__.co_freevars, o.__closure__, strict=True) if _full(c)]
        readers.append(Reader(iter(cells), by_closure, "closure"))
    if o.__defaults__:
        readers.append(Reader(iter([("__defaults__", o.__defaults__)]), by_attribute, "attribute"))
    if o.__kwdefaults__:
        readers.append(Reader(iter([("__kwdefaults__", o.__kwdefaults__)]), by_attribute, "attribute"))
    if o.__dict__:
        readers.append(Reader(iter(list(o.__dict__.items())), by_attribute, "attribute"))
    return readers


def _full(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def locals_of(frame: types.FrameType) -> list[tuple[str, Any]]:
    """A function frame's local variables.

    Up to Python 3.12 `f_locals` fills a dict that stays with the frame and would keep alive what the
    user deletes afterwards; it is emptied again unless the user has it, too (by `locals()`).
    """
    values = frame.f_locals
    pairs = list(values.items())
    is_copy = type(values) is dict and frame.f_code.co_flags & CO_OPTIMIZED
    if is_copy and sys.getrefcount(values) <= HELD_BY_FRAME_AND_US:
        values.clear()
    return pairs


def _of_frame(attribute: str, o: Any) -> list[Reader]:
    frame = getattr(o, attribute)
    if frame is None:
        return []
    return [Reader(iter(locals_of(frame)), functools.partial(by_frame, attribute), "generator")]


def of_traceback(o: types.TracebackType) -> list[Reader]:
    """The locals of all its frames, the cell's own frame apart; a name of two functions is told apart."""
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


# ---------------------------------------------------------------- tensors


def is_leaf(tensor: torch.Tensor) -> bool:
    """`tensor.is_leaf`, told from the base where reading it could rebuild a stale view's history."""
    if not internals.maybe_stale_view(tensor):
        return internals.is_leaf(tensor)
    base = internals.base(tensor)
    return base is not None and not internals.requires_grad(base)


def of_tensor(o: torch.Tensor) -> list[Reader]:
    """A gradient that has a graph itself; attributes and hooks that somebody put on the tensor."""
    readers = []
    readable = internals.requires_grad(o) and not internals.maybe_stale_view(o)
    if readable and (internals.is_leaf(o) or internals.retains_grad(o)):  # torch warns of other tensors' .grad
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


# ---------------------------------------------------------------- spelling


def by_index(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    if tuple in mro_of(type(owner)):
        fields = static_attribute(type(owner), "_fields")
        if type(fields) is tuple and key < len(fields):
            return f"{prefix}.{fields[key]}", True
    return f"{prefix}[{key}]", True


def by_position(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"list({prefix})[{key}]", True


def by_key(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    text = literal(key)
    if text is not None:
        return f"{prefix}[{text}]", True
    at = next((i for i, k in enumerate(dict.keys(owner)) if k is key), 0)
    return f"list({prefix}.values())[{at}]", True


def by_attribute(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    if not is_name(key) or hides_instance(type(owner), key):
        return f"vars({prefix})[{key!r}]", True
    return f"{prefix}.{key}", True


def by_registry(registry: str, item: Any, prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    """A parameter or buffer: `fc1.weight`, or `weights[0]` in a ParameterList."""
    if item is not None:
        if item is torch.nn.ParameterList.__getitem__ and type(key) is str and key.isdigit():
            return f"{prefix}[{key}]", True
        if item is torch.nn.ParameterDict.__getitem__:
            return f"{prefix}[{key!r}]", True
    if not is_name(key) or static_attribute(type(owner), key) is not None or key in own_attributes(owner):
        return f"{prefix}.{registry}[{key!r}]", True
    return f"{prefix}.{key}", True


def by_child(item: Any, prefix: str, at_key: Any, owner: Any) -> tuple[str, bool]:
    """A submodule as users write it: `net[2]`, `blocks['a']`, `model.fc1`."""
    at, key = at_key
    if item is torch.nn.ModuleDict.__getitem__:
        return f"{prefix}[{key!r}]", True
    if item is torch.nn.Sequential.__getitem__ and not is_name(key):
        return f"{prefix}[{at}]", True
    if item is torch.nn.ModuleList.__getitem__ and key == str(at):
        return f"{prefix}[{at}]", True
    return by_registry("_modules", None, prefix, key, owner)


def by_closure(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"{prefix}.__closure__[{key}]", False


def by_frame(attribute: str, prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"{prefix}.{attribute}[{key}]", False


def by_traceback(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"{prefix}: {key}", False


def by_arrow(prefix: str, key: Any, owner: Any) -> tuple[str, bool]:
    return f"{prefix} -> [{key}]", False


def is_name(key: Any) -> bool:
    return type(key) is str and key.isidentifier() and not keyword.iskeyword(key)


def hides_instance(cls: type, name: str) -> bool:
    """Whether a property or other data descriptor of the class is found before the instance's attribute."""
    found = static_attribute(cls, name)
    if found is None or type(found) in (types.MemberDescriptorType, types.GetSetDescriptorType):
        return False
    return any("__set__" in _class_dict(base) or "__delete__" in _class_dict(base) for base in mro_of(type(found)))


def literal(key: Any) -> str | None:
    """A short expression for a dict's key, None when there is none."""
    cls = type(key)
    if cls in (str, int, bool, bytes, type(None)) or (cls is float and isfinite(key)):
        text = repr(key)
    elif cls is tuple and key:
        parts = [literal(part) for part in key]
        text = "(" + ", ".join(p for p in parts if p is not None) + ("," if len(parts) == 1 else "") + ")"
        if None in parts:
            return None
    else:
        return None
    return text if len(text) <= 80 else None
