"""Who keeps a graph alive: every Python path that holds a tensor which requires grad.

`find` searches a namespace, live frames, IPython's output history and the last traceback. Short paths come first, and
large containers come after small ones, so that no container starves the others. The search is bounded in time;
`Search.notes` lists what it did not reach.

Searching must change nothing, so no user code runs: no `__getattr__`, property, `__len__`, `__iter__`, `__class__` or
`__torch_function__` of a foreign class. Types are known by `type(o)` and its MRO, contents are read through the base
class's own methods and descriptors.

Some objects are not searched, because they hold no tensors or only their own machinery: modules, arrays, numbers, text,
objects that the garbage collector does not track, and instances of the classes of `plans.SKIPPED_PACKAGES`.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from time import perf_counter, thread_time
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.owners import reading
from graphwidget.capture.owners.flags import false_flag
from graphwidget.capture.owners.paths import PathStep, containers_of, is_bounded, rank_of
from graphwidget.capture.owners.plans import Plan, Reader, plan_for, sample
from graphwidget.capture.owners.starting_points import LAST_RESULT, items_of, parts_of_older, starting_points

__all__ = ["Holding", "Search", "find"]

MAX_DEPTH = 24  # steps in a path
FIRST_CHUNK, MAX_CHUNK = 256, 4096  # elements of a container read in one turn
SAMPLED_ABOVE = 4096  # longer containers are searched only if a sample of them holds more than plain values
SAMPLE = 1000
MAX_PATHS = 8  # paths kept for one tensor
MAX_NOTES = 20
MAX_OTHERS = 20_000  # tensors without grad


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
        Whether it is a leaf; see `reading.is_leaf`.
    containers
        For an element: type name and length of its container, and of the container around that. Types other than
        Python's own containers have the length -1.
    rank
        The path with the lowest rank is the tensor's name; see `paths.rank_of`.
    bounded
        Whether it is in a `deque` with a `maxlen`.
    anchor
        Identity of the object that the class name stands for with which the path begins; 0: none does.
    """

    path: str
    kind: str
    tensor: torch.Tensor
    is_leaf: bool
    is_expression: bool = True
    containers: tuple[tuple[str, int], ...] = ()
    rank: tuple[int, ...] = (0,)
    bounded: bool = False
    anchor: int = 0


@dataclass(slots=True, eq=False)
class Search:
    """The result of `find`, the best name of each tensor first.

    It holds strong references to the tensors: drop it before user code runs again.
    """

    holdings: list[Holding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    others: list[tuple[torch.Tensor, PathStep]] = field(default_factory=list)  # tensors that require no grad
    flagged: list[tuple[Any, PathStep, str]] = field(default_factory=list)  # with an attribute of `flags.false_flag`

    def tensor_at(self, path: str) -> torch.Tensor | None:
        """Return the tensor that this search found at a path; nothing is evaluated."""
        return next((h.tensor for h in self.holdings if h.path == path), None)


def find(
    namespace: dict[str, Any],
    *,
    frames: Sequence[types.FrameType] = (),
    shell: Any = None,
    out: bool = True,
    last_error: bool = True,
    hidden: Iterable[str] = (),
    others: Iterable[tuple[str, str, Any]] = (),
    budget_s: float = 0.01,
    since: int = 0,
) -> Search:
    """Find every path to a tensor that requires grad.

    Parameters
    ----------
    namespace
        The notebook's variables: a dict.
    frames
        Live frames of the user's functions, innermost first; frames whose locals are the namespace are ignored.
    shell
        IPython's shell, for `last_execution_result`.
    out, last_error
        Whether to search `Out`, `_`, `__` and `___`; `sys.last_traceback`, `sys.last_value` and `sys.last_exc`.
    hidden
        Names of the namespace to leave out.
    others
        More objects to search, each with the beginning of its path and the kind of owner.
    budget_s
        Seconds of this thread after which the search stops and notes what it has not reached.
    since
        Leave out tensors whose nodes have lower sequence numbers, unless they lead to other objects.
    """
    with internals.quiet(), internals.no_collection():
        # The clock starts only here: a garbage collection before it could use up the whole budget.
        searcher = _Searcher(budget_s, namespace.get("__name__"), since)
        items = [item for item in items_of(namespace) if not searcher.passes_over(item[1])]
        parts, later = parts_of_older(items, frames), []
        for value, root in starting_points(items, frames, shell, out, last_error, frozenset(hidden), others):
            if id(value) in parts and root.kind in ("variable", "frame"):
                later.append((value, root))
            else:
                searcher.visit(value, root)
        searcher.run()
        for value, root in later:
            searcher.visit(value, root)
        if later:
            searcher.run()
    return Search(_in_order(searcher.holdings, namespace), searcher.notes, searcher.others, searcher.flagged)


class _Part:
    """Part of an object, still to be searched. The lowest `cost` comes first: deep and large parts come late."""

    __slots__ = ("chunk", "cost", "done", "owner", "reader", "step")

    def __init__(self, step: PathStep, owner: Any, reader: Reader, cost: int) -> None:
        self.step, self.owner, self.reader, self.cost = step, owner, reader, cost
        self.done, self.chunk = 0, FIRST_CHUNK

    def __lt__(self, other: _Part) -> bool:
        return self.cost < other.cost


class _Searcher:
    """The search itself: a heap of parts, each searched for one chunk of its elements at a time."""

    def __init__(self, budget_s: float, module_name: object, since: int) -> None:
        self.deadline, self.module_name, self.since = perf_counter() + budget_s, module_name, since
        self.own_deadline = thread_time() + budget_s  # other programs on a busy machine must not cut the search short
        self.queue: list[_Part] = []
        self.seen: dict[int, Any] = {}  # id -> the object, held so that no id is used twice
        self.plans: dict[type, Plan] = {}
        self.numbers: dict[type, Callable[[Any], int]] = {}  # type of a node -> reader of its sequence number
        self.holdings: list[Holding] = []
        self.others: list[tuple[torch.Tensor, PathStep]] = []
        self.flagged: list[tuple[Any, PathStep, str]] = []
        self.known: dict[int, list[int]] = {}  # id of a tensor -> indices of its paths in `holdings`
        self.containers: dict[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]] = {}  # equal tuples, shared
        self.notes: list[str] = []

    def plan(self, cls: type) -> Plan:
        """Return how instances of a type are read."""
        found = self.plans.get(cls)
        if found is None:
            found = self.plans[cls] = plan_for(cls)
        return found

    def visit(self, child: Any, step: PathStep, cost: int = 0) -> None:
        """Record a tensor, or queue an object that may hold one."""
        plan = self.plan(type(child))
        if plan.skip:
            return
        if plan.tensor:
            self.hold(child, step)
        if id(child) in self.seen or not gc.is_tracked(child):
            return
        self.seen[id(child)] = child
        # Reading the attributes of a tensor that has none would make a dict for them.
        if (plan.is_module or (plan.tensor and len(gc.get_referents(child)) > 1)) and (name := false_flag(child)):
            self.flagged.append((child, step, name))
        if plan.is_class and reading.module_of(child) != self.module_name:
            return  # imported, not the user's
        if plan.simple and self.nothing_in([child]):
            return
        if step.depth >= MAX_DEPTH:
            self.note(f"did not look deeper than `{step.path()}`")
            return
        for reader in plan.readers(child):
            heappush(self.queue, _Part(step, child, reader, cost + reader.total.bit_length() // 3))

    def passes_over(self, thing: Any) -> bool:
        """Whether the search can skip an object: a plain value, or an old tensor."""
        plan = self.plans.get(type(thing)) or self.plan(type(thing))
        return plan.skip or (plan.tensor and self.is_older(thing))

    def is_older(self, thing: Any) -> bool:
        """Whether it is a tensor that is older than `since` and leads to no other object."""
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

    def hold(self, tensor: torch.Tensor, step: PathStep) -> None:
        """Remember a path to a tensor; at most `MAX_PATHS`, the best ones, for each tensor."""
        if not internals.requires_grad(tensor):
            if id(tensor) not in self.seen and len(self.others) < MAX_OTHERS:
                self.others.append((tensor, step))
            return
        holdings, known, rank = self.holdings, self.known.setdefault(id(tensor), []), rank_of(step)
        at = len(holdings)
        if len(known) < MAX_PATHS:
            known.append(at)
        else:
            at = max(known, key=lambda i: holdings[i].rank)
            if holdings[at].rank <= rank:
                return
        path, inside = step.path(), containers_of(step)
        inside = self.containers.setdefault(inside, inside)
        leaf, expression = reading.is_leaf(tensor), step.expression
        bounded, anchor = is_bounded(step), step.anchor
        holdings[at : at + 1] = [Holding(path, step.kind, tensor, leaf, expression, inside, rank, bounded, anchor)]

    def run(self) -> None:
        """Search all parts in the queue, until the time is up."""
        queue = self.queue
        while queue:
            if perf_counter() > self.deadline and thread_time() > self.own_deadline:
                self.unfinished()
                return
            part = heappop(queue)
            try:
                pairs = list(islice(part.reader.pairs, part.chunk))
            except RuntimeError:  # "changed size during iteration": another thread is at work
                self.note(f"`{part.step.path()}` changed while it was looked at")
                continue
            nothing = len(pairs) > 64 and self.nothing_in([child for _, child in pairs])
            if not nothing:
                self.visit_children(part, pairs)
            if len(pairs) < part.chunk or (nothing and not part.done and self.only_values(part)):
                continue
            part.done += len(pairs)
            if nothing:  # cheap to search
                part.chunk = min(part.chunk * 2, MAX_CHUNK)
            part.cost += 2
            heappush(queue, part)

    def visit_children(self, part: _Part, pairs: list[tuple[Any, Any]]) -> None:
        """Visit the children in one chunk of a part."""
        reader, cost = part.reader, part.cost + 1
        for key, child in pairs:
            if not self.passes_over(child):
                self.visit(child, PathStep(part.step, reader, key, part.owner), cost)

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

    def only_values(self, part: _Part) -> bool:
        """Whether a sample of a long container has only plain values. If so, note that the rest is left out."""
        total = part.reader.total
        elements = sample(part.owner, SAMPLE) if total > SAMPLED_ABOVE else None
        if elements is None or not all(self.plan(cls).skip for cls in set(map(type, elements))):
            return False
        self.note(f"looked at {part.chunk + len(elements):,} of {total:,} elements of `{part.step.path()}`")
        return True

    def unfinished(self) -> None:
        """Note what the search has not reached when its time is up."""
        small = []
        for part in self.queue:
            if part.done:
                self.note(f"looked at {part.done:,} of {part.reader.total:,} elements of `{part.step.path()}`")
            else:
                small.append(part)
        if small:
            self.note(f"did not look into {len(small):,} more objects, the first `{min(small).step.path()}`")

    def note(self, text: str) -> None:
        """Add a note about what was not searched, once."""
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)


def _in_order(holdings: list[Holding], namespace: dict[str, Any]) -> list[Holding]:
    """Sort by rank, and keep one of several paths that vanish together.

    Of two variables for one leaf, the older one comes first: the younger may be the variable of a loop over leaves.
    """
    age = {name: at for at, (name, _) in enumerate(items_of(namespace))}
    holdings.sort(key=lambda h: (h.rank, age.get(h.path, 0) if h.is_leaf else 0, len(h.path), h.path))
    paths: set[tuple[int, str]] = set()
    in_traceback: set[int] = set()
    named: set[int] = set()
    kept = []
    for holding in holdings:
        key, path = id(holding.tensor), (holding.anchor, holding.path)
        if path in paths or (holding.kind == "traceback" and key in in_traceback):
            continue
        if holding.path.startswith(LAST_RESULT) and key in named:
            continue  # the next cell replaces it anyway
        paths.add(path)
        named.add(key)
        if holding.kind == "traceback":
            in_traceback.add(key)
        kept.append(holding)
    return kept
