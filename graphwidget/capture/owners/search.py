"""Who keeps a graph alive: every Python path that holds a tensor which requires grad.

`find` looks through a namespace, live frames, IPython's output history and the last traceback.
Short paths come first, and what lies in a large container comes after what lies in small ones, so
that no container starves the others. The search is bounded in time; what was not looked at is said
in `Search.notes`.

Looking must change nothing, so no code of the user's runs: no `__getattr__`, property, `__len__`,
`__iter__`, `__class__` or `__torch_function__` of a foreign class. Types are told by `type(o)` and
its MRO, contents are read through the base class's own methods and descriptors.

Not looked into, because they hold no tensors or only their own machinery: modules, arrays, numbers,
text, objects that the garbage collector does not track, and instances of the classes of
`reading.SKIPPED_PACKAGES`.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from time import perf_counter, thread_time
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.garbage_collection import no_collection
from graphwidget.capture.owners import reading
from graphwidget.capture.owners.reading import Plan, Reader, mro_of

__all__ = ["Holding", "Search", "find"]

MAX_DEPTH = 24  # steps in a path
FIRST_CHUNK, MAX_CHUNK = 256, 4096  # elements of a container looked at in one turn
SAMPLED_ABOVE = 4096  # longer containers are looked into only if a sample of them holds more than plain values
SAMPLE = 1000
MAX_PATHS = 8  # paths kept for one tensor
MAX_NOTES = 20
MAX_OTHERS = 20_000  # tensors without grad
KINDS_THAT_STAY = frozenset({"out", "traceback", "frame", "closure", "generator", "hook"})
# Where a tensor is named from, the best first: variables, locals, optimizers, history, tracebacks, other machinery.
GROUP = {"frame": 1, "out": 3, "traceback": 4, "other": 5}
IN_OPTIMIZER = 2
IPYTHON_NAMES = frozenset({"In", "Out", "get_ipython", "exit", "quit", "_ih", "_oh", "_dh", "_i", "_ii", "_iii"})
LAST_OUTPUTS = ("_", "__", "___")
_LENGTHS: dict[type, Callable[[Any], int]] = {cls: cls.__len__ for cls in (list, tuple, dict, deque)}
LAST_RESULT = "get_ipython().last_execution_result"


@dataclass(slots=True, eq=False)
class Holding:
    """One path that holds one tensor.

    Attributes
    ----------
    path
        A Python expression in the searched namespace where `is_expression`, else a description: ``f.__closure__[h]``,
        ``gen.gi_frame[h]``, ``step:act`` (a local of a live frame), ``sys.last_traceback: act``.
    kind
        variable, element, attribute, closure, frame, generator, out, traceback, grad, hook, other.
    tensor
        The tensor itself: a strong reference. See `Search`.
    is_leaf
        Read only where reading cannot make torch rebuild a view's history.
    containers
        Of an element: name of the type and length of the container that it is in, and of the one around that. Types
        other than Python's own containers have the length -1.
    rank
        Of two paths to a tensor the one of lower rank is what it is called; see `_rank`.
    bounded
        Whether it is in a queue with a `maxlen`.
    """

    path: str
    kind: str
    tensor: torch.Tensor
    is_leaf: bool
    is_expression: bool = True
    containers: tuple[tuple[str, int], ...] = ()
    rank: tuple[int, ...] = (0,)
    bounded: bool = False


@dataclass(slots=True, eq=False)
class Search:
    """What `find` found, the best name of each tensor first.

    It holds the tensors strongly: drop it before the user's code runs again.
    """

    holdings: list[Holding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    others: list[tuple[torch.Tensor, _Spot]] = field(default_factory=list)  # tensors that require no grad

    def tensor_at(self, path: str) -> torch.Tensor | None:
        """The tensor at a path that this search found; nothing is evaluated."""
        return next((h.tensor for h in self.holdings if h.path == path), None)


def find(
    namespace: dict[str, Any],
    *,
    frames: Sequence[types.FrameType] = (),
    shell: Any = None,
    out: bool = True,
    last_error: bool = True,
    hidden: Iterable[str] = (),
    budget_s: float = 0.01,
    since: int = 0,
) -> Search:
    """Find every path to a tensor that requires grad.

    Parameters
    ----------
    namespace
        The notebook's variables (any dict).
    frames
        Live frames of the user's functions, innermost first; frames whose locals are the namespace are ignored.
    shell
        IPython's shell, for `last_execution_result`.
    out, last_error
        Whether to look at `Out`, `_` and the like, and at `sys.last_traceback` and its kin.
    hidden
        Names of the namespace to leave out.
    budget_s
        Time of this thread after which the search stops and says what it has not looked at.
    since
        Tensors whose nodes have lower sequence numbers than this are older than what is asked about: they may be left
        out, and those that lead to nothing else are.
    """
    with internals.quiet(), no_collection():
        # Its clock starts here: a collection that came before it could take all of the time.
        walk = _Walk(budget_s, namespace.get("__name__"), since)
        items = [item for item in _items(namespace) if not walk.passes_over(item[1])]
        for value, root in _roots(items, frames, shell, out, last_error, frozenset(hidden)):
            walk.meet(value, root)
        walk.run()
    return Search(_in_order(walk.holdings, namespace), walk.notes, walk.others)


class _Spot:
    """A place in the tree of paths; its text is made only when a tensor is found there."""

    __slots__ = ("depth", "expression", "key", "kind", "owner", "parent", "registered", "spell", "text", "tier")

    def __init__(self, parent: _Spot, reader: Reader, key: Any, owner: Any) -> None:
        self.parent: _Spot | None = parent
        self.spell, self.key, self.owner = reader.spell, key, owner
        self.kind = parent.kind if parent.kind in KINDS_THAT_STAY else reader.kind
        self.tier = max(parent.tier, reader.tier)  # of the step that is liked least
        self.registered = reader.tier == reading.REGISTERED
        self.depth = parent.depth + 1
        self.text: str | None = None
        self.expression = False

    @classmethod
    def root(cls, path: str, kind: str, expression: bool = True) -> _Spot:
        spot = cls.__new__(cls)
        spot.parent, spot.kind, spot.depth, spot.text, spot.expression = None, kind, 0, path, expression
        spot.tier, spot.registered = reading.PLAIN, False
        return spot

    def path(self) -> str:
        chain: list[_Spot] = []
        spot = self
        while spot.text is None and spot.parent is not None:
            chain.append(spot)
            spot = spot.parent
        text, expression = spot.text or "", spot.expression
        for spot in reversed(chain):
            text, true = spot.spell(text, spot.key, spot.owner)
            expression = expression and true
            spot.text, spot.expression = text, expression
        return text


class _Box:
    """Part of an object still to be looked at. `cost` is its turn: deep and crowded places come late."""

    __slots__ = ("chunk", "cost", "done", "owner", "reader", "spot")

    def __init__(self, spot: _Spot, owner: Any, reader: Reader, cost: int) -> None:
        self.spot, self.owner, self.reader, self.cost = spot, owner, reader, cost
        self.done, self.chunk = 0, FIRST_CHUNK

    def __lt__(self, other: _Box) -> bool:
        return self.cost < other.cost


class _Walk:
    """The search itself: a heap of boxes, each looked at for one chunk at a time."""

    def __init__(self, budget_s: float, module_name: object, since: int) -> None:
        self.deadline, self.module_name, self.since = perf_counter() + budget_s, module_name, since
        self.own_deadline = thread_time() + budget_s  # a machine that is busy with others makes no search blind
        self.queue: list[_Box] = []
        self.seen: dict[int, Any] = {}  # id -> the object, held so that no id is used twice
        self.plans: dict[type, Plan] = {}
        self.numbers: dict[type, Callable[[Any], int]] = {}  # type of a node -> what reads its sequence number
        self.holdings: list[Holding] = []
        self.others: list[tuple[torch.Tensor, _Spot]] = []
        self.known: dict[int, list[int]] = {}  # id of a tensor -> where its paths are in `holdings`
        self.containers: dict[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]] = {}  # one of each
        self.notes: list[str] = []

    def plan(self, cls: type) -> Plan:
        found = self.plans.get(cls)
        if found is None:
            found = self.plans[cls] = reading.plan_for(cls)
        return found

    def meet(self, child: Any, spot: _Spot, cost: int = 0) -> None:
        """Note a tensor, or queue an object that may hold one."""
        plan = self.plan(type(child))
        if plan.skip:
            return
        if plan.tensor:
            self.hold(child, spot)
        if id(child) in self.seen or not gc.is_tracked(child):
            return
        self.seen[id(child)] = child
        if plan.is_class and reading.module_of(child) != self.module_name:
            return  # imported, not the user's
        if plan.simple and self.nothing_in([child]):
            return
        if spot.depth >= MAX_DEPTH:
            self.note(f"did not look deeper than `{spot.path()}`")
            return
        for reader in plan.readers(child):
            heappush(self.queue, _Box(spot, child, reader, cost + reader.total.bit_length() // 3))

    def passes_over(self, thing: Any) -> bool:
        """Whether nothing is to be found there: a plain value, or an old tensor."""
        plan = self.plans.get(type(thing)) or self.plan(type(thing))
        return plan.skip or (plan.tensor and self.is_older(thing))

    def is_older(self, thing: Any) -> bool:
        """Whether it is a tensor that is older than what is asked about, and leads to nothing else."""
        if not self.since or type(thing) is not torch.Tensor or internals.maybe_stale_view(thing):
            return False
        node = internals.grad_fn(thing)
        if node is None or internals.retains_grad(thing):
            return False
        read = self.numbers.get(type(node))
        if read is None:
            read = self.numbers[type(node)] = internals.node_readers(type(node))[1]
        if read(node) >= self.since:
            return False
        return all(
            one is torch.Tensor or one is node or (type(one) is dict and not one) for one in gc.get_referents(thing)
        )

    def hold(self, tensor: torch.Tensor, spot: _Spot) -> None:
        if not internals.requires_grad(tensor):
            if id(tensor) not in self.seen and len(self.others) < MAX_OTHERS:
                self.others.append((tensor, spot))
            return
        holdings, known, rank = self.holdings, self.known.setdefault(id(tensor), []), _rank(spot)
        at = len(holdings)
        if len(known) < MAX_PATHS:
            known.append(at)
        else:
            at = max(known, key=lambda i: holdings[i].rank)
            if holdings[at].rank <= rank:
                return
        path, inside = spot.path(), _containers(spot)
        inside = self.containers.setdefault(inside, inside)
        leaf, expression = reading.is_leaf(tensor), spot.expression
        holdings[at : at + 1] = [Holding(path, spot.kind, tensor, leaf, expression, inside, rank, _is_bounded(spot))]

    def run(self) -> None:
        queue = self.queue
        while queue:
            if perf_counter() > self.deadline and thread_time() > self.own_deadline:
                self.unfinished()
                return
            box = heappop(queue)
            try:
                pairs = list(islice(box.reader.pairs, box.chunk))
            except RuntimeError:  # "changed size during iteration": another thread is at work
                self.note(f"`{box.spot.path()}` changed while it was looked at")
                continue
            nothing = len(pairs) > 64 and self.nothing_in([child for _, child in pairs])
            if not nothing:
                self.look(box, pairs)
            if len(pairs) < box.chunk or (nothing and not box.done and self.only_values(box)):
                continue
            box.done += len(pairs)
            if nothing:  # cheap to look at
                box.chunk = min(box.chunk * 2, MAX_CHUNK)
            box.cost += 2
            heappush(queue, box)

    def look(self, box: _Box, pairs: list[tuple[Any, Any]]) -> None:
        reader, cost = box.reader, box.cost + 1
        for key, child in pairs:
            if not self.passes_over(child):
                self.meet(child, _Spot(box.spot, reader, key, box.owner), cost)

    def nothing_in(self, children: list[Any]) -> bool:
        """Whether all of them are plain values, or objects that hold nothing but plain values."""
        kinds = [self.plan(cls) for cls in set(map(type, children))]
        if all(plan.skip for plan in kinds):
            return True
        if not all(plan.skip or plan.simple for plan in kinds):
            return False
        inside = gc.get_referents(*children)
        found = set(map(type, inside))
        if dict in found:  # an object's `__dict__`, or a dict that is an attribute
            found.discard(dict)
            found.update(map(type, gc.get_referents(*[o for o in inside if type(o) is dict])))
        return all(plan.skip or plan.is_class for plan in map(self.plan, found))

    def only_values(self, box: _Box) -> bool:
        """Judge a long container by a sample from all over it; say so when the rest is left out."""
        total = box.reader.total
        sample = reading.sample(box.owner, SAMPLE) if total > SAMPLED_ABOVE else None
        if sample is None or not all(self.plan(cls).skip for cls in set(map(type, sample))):
            return False
        self.note(f"looked at {box.chunk + len(sample):,} of {total:,} elements of `{box.spot.path()}`")
        return True

    def unfinished(self) -> None:
        """Say what is left when the time is up."""
        small = []
        for box in self.queue:
            if box.done:
                self.note(f"looked at {box.done:,} of {box.reader.total:,} elements of `{box.spot.path()}`")
            else:
                small.append(box)
        if small:
            self.note(f"did not look into {len(small):,} more objects, the first `{min(small).spot.path()}`")

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)


def _containers(spot: _Spot) -> tuple[tuple[str, int], ...]:
    """Types and lengths of what the last two steps of a path lead into."""
    found: list[tuple[str, int]] = []
    one: _Spot | None = spot
    while one is not None and one.parent is not None and len(found) < 2:
        cls = type(one.owner)
        length = _LENGTHS.get(cls)
        found.append((cls.__name__, length(one.owner) if length is not None else -1))
        one = one.parent
    return tuple(found)


def _is_bounded(spot: _Spot) -> bool:
    """Whether a queue on the way lets the oldest go when something new comes in."""
    one: _Spot | None = spot
    while one is not None and one.parent is not None:
        if type(one.owner) is deque and one.owner.maxlen is not None:
            return True
        one = one.parent
    return False


def _rank(spot: _Spot) -> tuple[int, ...]:
    """How well a path names a tensor, the best first.

    As its owner wrote it: the name that a module gave to a parameter or buffer (also of a module in a list), before a
    variable (which may be that of a loop) or an attribute, before an element of a container, before what nobody writes;
    fewer steps before more. What an optimizer has inside comes after all of the user's own.
    """
    inside = spot.tier == reading.OPTIMIZER and spot.kind not in ("out", "traceback")
    named = spot.registered and spot.tier <= reading.CONTAINED
    group = IN_OPTIMIZER if inside else GROUP.get(spot.kind, 0)
    return (group, reading.REGISTERED if named else spot.tier, spot.depth)


def _in_order(holdings: list[Holding], namespace: dict[str, Any]) -> list[Holding]:
    """The best name of each tensor first; of what goes away together, one entry.

    Of two variables for one leaf the older one made it; the other may be that of a loop over all of them.
    """
    age = {name: at for at, (name, _) in enumerate(_items(namespace))}
    holdings.sort(key=lambda h: (h.rank, age.get(h.path, 0) if h.is_leaf else 0, len(h.path), h.path))
    paths: set[str] = set()
    in_traceback: set[int] = set()
    named: set[int] = set()
    kept = []
    for holding in holdings:
        key = id(holding.tensor)
        if holding.path in paths or (holding.kind == "traceback" and key in in_traceback):
            continue
        if holding.path.startswith(LAST_RESULT) and key in named:
            continue  # replaced by the next cell anyway
        paths.add(holding.path)
        named.add(key)
        if holding.kind == "traceback":
            in_traceback.add(key)
        kept.append(holding)
    return kept


def _roots(
    items: list[tuple[Any, Any]],
    frames: Sequence[types.FrameType],
    shell: Any,
    out: bool,
    last_error: bool,
    hidden: frozenset[str],
) -> Iterator[tuple[Any, _Spot]]:
    """Where the search starts, in the order in which names are preferred."""
    names = {name: value for name, value in items if type(name) is str and name not in hidden}
    outputs = list(_outputs(names, dict(items).get("Out"))) if out else []
    apart = IPYTHON_NAMES.union(path for path, _ in outputs)
    for name in sorted(names, key=lambda name: (name.startswith("_"), len(name))):
        if name not in apart and not name.startswith("__") and not (_is_number(name) and out):
            yield names[name], _Spot.root(name if reading.is_name(name) else f"globals()[{name!r}]", "variable")
    for frame in frames:
        if frame.f_code.co_flags & reading.CO_OPTIMIZED:
            for name, value in reading.locals_of(frame):
                yield value, _Spot.root(f"{frame.f_code.co_name}:{name}", "frame", expression=False)
    for path, value in outputs:
        yield value, _Spot.root(path, "out")
    if out and shell is not None:
        result = reading.own_attributes(shell).get("last_execution_result")
        for name, value in reading.own_attributes(result).items():
            if name in ("result", "error_before_exec", "error_in_exec"):
                yield value, _Spot.root(f"{LAST_RESULT}.{name}", "out" if name == "result" else "traceback")
    if last_error:
        for name in ("last_traceback", "last_value", "last_exc"):
            yield sys.__dict__.get(name), _Spot.root(f"sys.{name}", "traceback")


def _outputs(names: dict[str, Any], history: Any) -> Iterator[tuple[str, Any]]:
    """`Out[n]`, `_`, `__`, `___`, and `_n` where it is not what `Out[n]` is."""
    values = dict(_items(history))
    for n, value in values.items():
        yield f"Out[{n!r}]", value
    for name in names:
        if name in LAST_OUTPUTS or (_is_number(name) and values.get(int(name[1:])) is not names[name]):
            yield name, names[name]


def _is_number(name: str) -> bool:
    return name.startswith("_") and name[1:].isdecimal()


def _items(mapping: Any) -> list[tuple[Any, Any]]:
    return list(dict.items(mapping)) if dict in mro_of(type(mapping)) else []
