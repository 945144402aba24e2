"""Which `nn.Module` was running while a node was made: global forward hooks that read a counter.

Modules are never kept alive: each is known by `id` and a weak reference. Its dotted path from the user's name
is looked up when it is needed.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling
from torch.nn.modules import module as hooks

from graphwidget import torch_internals as ti
from graphwidget.capture.lines.ranges import FRESH, Ranges
from graphwidget.capture.owners import reading
from graphwidget.capture.owners.spelling import by_child
from graphwidget.model import ModuleCall

__all__ = ["ModuleTracer"]

# Tiny modules in a tight loop would spend a good part of their time in hooks: then hooks are off until the next cell.
COST = 5e-6  # seconds for one call
SHARE = 0.02
CHECK_EVERY = 500


class _ModuleRecord:
    """The record of one module."""

    __slots__ = ("calls", "children", "class_name", "inplace", "key", "own_code", "path", "ref")

    def __init__(self, module: torch.nn.Module, key: int, own_code: bool) -> None:
        self.key = key
        self.class_name = type(module).__name__
        self.own_code = own_code  # whether its `forward` is, or calls, code of the user's
        self.inplace = _works_in_place(module)
        self.calls = 0
        self.path: str | None = None  # from the user's name, once found
        self.children: dict[int, str] | None = None  # id -> path below this module, if it was called from outside
        self.ref = weakref.ref(module)


class _ThreadState:
    __slots__ = ("fresh", "last", "ranges", "stack", "trace")

    def __init__(self, now: int) -> None:
        self.last = now
        self.ranges = Ranges()
        self.fresh = self.ranges.fresh
        # (module, number of the call, whether to trace lines after it, and in it) of the calls in progress.
        self.stack: list[tuple[_ModuleRecord, int, bool, bool]] = []
        self.trace: Any = None

    def close(self, now: int) -> None:
        if self.stack:
            inner, call, _, _ = self.stack[-1]
            fresh = self.fresh
            fresh += (self.last, now, inner.key, self.stack[0][0].key, call)
            if len(fresh) > FRESH:
                self.ranges.settle()
        self.last = now


class ModuleTracer:
    """Records for each stretch of sequence numbers the innermost module call.

    Parameters
    ----------
    count
        Returns the next sequence number of the calling thread.
    problem
        Called with an exception of our own; the user's forward goes on.
    is_own
        Whether code belongs to a cell.
    pauses
        On Python 3.10 and 3.11 tracing lines slows all code down, so it pauses while torch's own modules run, if they
        call no hook and no function of the user's. Three functions: pause inside a module, pause outside all modules
        (where tracing should be on), and continue. None: no pause is needed.
    """

    def __init__(
        self,
        count: Callable[[], int],
        problem: Callable[[BaseException], None],
        *,
        is_own: Callable[[CodeType], bool] = lambda code: True,
        pauses: tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], None]] | None = None,
    ) -> None:
        self.count, self.problem, self.is_own = count, problem, is_own
        self.pause = pauses[0] if pauses is not None else None
        self.pause_or_reclaim = pauses[1] if pauses is not None else lambda: None
        self.unpause = pauses[2] if pauses is not None else lambda trace: None
        self.threads: list[_ThreadState] = []
        self._by_id: dict[int, _ModuleRecord] = {}
        self._by_key: list[tuple[str, str | None]] = []  # key -> (class name, path if the module has died)
        self._alive: dict[int, _ModuleRecord] = {}  # key -> module
        self._local = threading.local()
        self._since, self._calls = perf_counter(), 0
        self.rested = False  # whether the hooks were removed because they cost too much
        self._handles: list[Any] = []
        self._undo: Callable[[], None] = lambda: None
        self._global: dict[int, tuple[int | None, bool]] = {}  # id of a table of hooks -> its newest, and if one is own

    def start(self) -> None:
        """Install the hooks. They are removed again if they cost too much."""
        self._since, self._calls = perf_counter(), 0
        if not self._handles:
            self._handles = [
                hooks.register_module_forward_pre_hook(self._before),
                hooks.register_module_forward_hook(self._after, always_call=True),
            ]
            self._undo = ti.hide_from_compile(self._handles)

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._undo()

    def _state(self) -> _ThreadState:
        try:
            return self._local.state  # type: ignore[no-any-return]
        except AttributeError:
            state = self._local.state = _ThreadState(self.count())
            self.threads.append(state)
            return state

    def _before(self, module: torch.nn.Module, args: object) -> None:
        if is_dynamo_compiling():  # torch.compile reads these hooks, too
            return
        paused = None
        try:
            try:
                state: _ThreadState = self._local.state
            except AttributeError:
                state = self._state()
            stack = state.stack
            if self.pause is not None:
                paused = self.pause() if stack else self.pause_or_reclaim()
            now = self.count()
            if now != state.last:
                state.close(now)
            if paused is not None:
                state.trace = paused
            known = self._by_id.get(id(module))
            if known is None or known.ref() is not module:
                known = self._add(module)
            # A hook of an inner module may have left tracing on in code of torch's: it need not go on there.
            after = paused is not None and (not stack or stack[-1][3])
            inside = (
                known.own_code or bool(module._forward_pre_hooks) or self._calls_own(hooks._global_forward_pre_hooks)
            )
            stack.append((known, known.calls, after, inside))
            known.calls += 1
            if inside and state.trace is not None:
                self.unpause(state.trace)
        except Exception as error:
            self.unpause(paused)
            self.problem(error)

    def _after(self, module: torch.nn.Module, args: object, output: object) -> None:
        if is_dynamo_compiling():
            return
        try:
            try:
                state: _ThreadState = self._local.state
            except AttributeError:
                state = self._state()
            stack = state.stack
            if self.pause is not None:
                self.pause()
            now = self.count()
            if now != state.last:
                state.close(now)
            # An exception may have skipped the end of inner calls.
            while stack:
                known, _, after, _ = stack.pop()
                if known.ref() is module:
                    # The module's own hooks run after this one.
                    hooked = module._forward_hooks or self._calls_own(hooks._global_forward_hooks)
                    if (after or hooked) and state.trace is not None:
                        self.unpause(state.trace)
                    break
            if not stack:
                state.trace = None
                self._calls += 1
                if self._calls >= CHECK_EVERY:
                    self._check()
        except Exception as error:
            self.problem(error)

    def _check(self) -> None:
        """Remove the hooks if the last calls came so fast that hooks took more than `SHARE` of the time."""
        now = perf_counter()
        if self._calls * COST > SHARE * (now - self._since):
            self.rested = True
            self.stop()
        self._since, self._calls = now, 0

    def _add(self, module: torch.nn.Module) -> _ModuleRecord:
        key = len(self._by_key)
        # Not `type(module).forward`: that of a scripted module is an object which only an instance can be asked for.
        forward = reading.static_attribute(type(module), "forward")
        code = getattr(getattr(forward, "__func__", forward), "__code__", None)  # `__func__`: of a static method
        own = code is not None and self.is_own(code)
        given = self.pause is not None and any(map(self._is_own_function, vars(module).values()))
        known = _ModuleRecord(module, key, own or given)
        self._by_key.append((known.class_name, None))
        self._by_id[id(module)] = self._alive[key] = known
        return known

    def _is_own_function(self, value: object) -> bool:
        """Whether a module was given a function of the user's: ``nn.TransformerEncoderLayer(8, 2, activation=f)``."""
        return type(value) is FunctionType and self.is_own(value.__code__)

    def _calls_own(self, table: dict[int, Any]) -> bool:
        """Whether one of the hooks that all modules call is the user's own."""
        newest = next(reversed(table), None)
        known = self._global.get(id(table))
        if known is None or known[0] != newest:
            codes = [reading.code_of(hook) for hook in table.values()]
            known = self._global[id(table)] = (newest, any(code is not None and self.is_own(code) for code in codes))
        return known[1]

    def _drop_dead_modules(self) -> None:
        """Keep only the names of dead modules. (Not done at their death: a Ctrl+C at that moment would be lost.)"""
        for number, known in list(self._by_id.items()):
            if known.ref() is None:
                del self._by_id[number]
        for key, known in list(self._alive.items()):
            if known.ref() is None:
                del self._alive[key]
                self._by_key[key] = (known.class_name, known.path)

    def name(self, namespaces: Iterable[Mapping[str, Any]]) -> None:
        """Find the user's names for the called modules, in one walk over the modules of the namespaces."""
        self._drop_dead_modules()
        wanted = {id(m): k for k in list(self._alive.values()) if k.path is None and (m := k.ref()) is not None}
        if not wanted:
            return
        for namespace in namespaces:
            for variable, value in list(namespace.items()):
                named = isinstance(variable, str) and not variable.startswith("_")
                if named and issubclass(type(value), torch.nn.Module):
                    self._name_below(variable, value, wanted)

    def _name_below(self, variable: str, root: torch.nn.Module, wanted: dict[int, _ModuleRecord]) -> None:
        for path, module in root.named_modules():
            known = wanted.get(id(module))
            # The variable that was defined first: `model.h.11`, not the `block` that a loop over `model.h` left behind.
            if known is not None and known.path is None:
                known.path = written(variable, root, path)

    def describe(self, inner: int, outer: int, call: int) -> ModuleCall:
        """The module call that a stretch's three integers stand for. A module without a name gets its class's name."""
        class_name, path = self._class_and_path(inner)
        named = path is not None
        if path is None and inner != outer:
            outer_class, outer_path = self._class_and_path(outer)
            below = self._below(outer, inner)
            path = written(outer_path or outer_class, *below) if below else None
            named = below is not None and outer_path is not None
        return ModuleCall(path or class_name, class_name, call, named, self._still_in_place(inner))

    def _still_in_place(self, key: int) -> bool:
        """Whether a module worked in place when first met and does so now. It was not checked in between."""
        known = self._alive.get(key)
        module = known.ref() if known is not None and known.inplace else None
        return module is not None and _works_in_place(module)

    def _class_and_path(self, key: int) -> tuple[str, str | None]:
        known = self._alive.get(key)
        return (known.class_name, known.path) if known is not None else self._by_key[key]

    def _below(self, outer: int, inner: int) -> tuple[torch.nn.Module, str] | None:
        """The outer module, and the path of the inner module in it. None: not inside, or one has died."""
        above, below = self._alive.get(outer), self._alive.get(inner)
        module = above.ref() if above is not None else None
        if module is None or above is None or below is None:
            return None
        if above.children is None:
            above.children = {id(child): path for path, child in module.named_modules()}
        path = above.children.get(id(below.ref()))
        return (module, path) if path else None

    def find(self, seq: int) -> tuple[int, int, int] | None:
        """(inner key, outer key, call number) of the module call that used a sequence number; None: none or several."""
        found = None
        for state in self.threads:
            hit = state.ranges.find(seq)
            if hit is not None:
                if found is not None:
                    return None
                found = hit
        return found

    def make_room(self, live: Callable[[], Sequence[int]]) -> None:
        """In threads that have too many stretches, drop those without a living node."""
        for state in self.threads:
            if state.ranges.full:
                state.ranges.keep(live())


def written(name: str, root: torch.nn.Module, dotted: str) -> str:
    """The path of a module inside `root` as users (and leaves) write it: ``net.h[0].act`` for ``h.0.act``.

    `name` is the name of `root`, `dotted` that of the module in `named_modules`.
    """
    module: Any = root
    for key in dotted.split(".") if dotted else ():
        children = module._modules
        item = reading.static_attribute(type(module), "__getitem__")
        name, _ = by_child(item, name, (list(children).index(key), key), module)
        module = children[key]
    return name


def _works_in_place(module: torch.nn.Module) -> bool:
    own = type(module).__module__.startswith("torch.nn.modules.")
    return own and vars(module).get("inplace") is True
