"""The steps of optimizers: each reports its own, wherever it is called from.

What a step wrote is seen by the versions of its parameters. In a training loop the steps of an optimizer are alike, and
comparing all versions at each would be a good part of a tight loop: then it is done for several steps at once. Version
counters only go up, and by how much a step raises each is known from steps looked at alone. If all have gone up by just
that, times the number of steps, those steps did as usual; if not, what they wrote is not said.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from operator import sub
from time import perf_counter
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.owners import reading
from graphwidget.capture.writes.watched import Log, Step, Watched
from graphwidget.model import Place, Write

__all__ = ["Steps"]

MAX_OPTIMIZERS = 100  # whose usual steps are remembered
COMPARE_EVERY = 100e-6  # seconds, times the number of parameters: comparing takes about 0.4 µs each


class _Usual:
    """What a step of an optimizer does, time after time: the positions of its parameters, by how much it raises their
    versions, and its write."""

    __slots__ = ("at_once", "compared", "known", "n", "positions", "raised", "refs", "shape", "spot", "write")

    def __init__(
        self,
        shape: list[int],
        refs: list[Callable[[], Any]],
        positions: list[int],
        raised: list[int],
        write: Write,
        spot: tuple[int, int, int],
        at_once: bool,
    ) -> None:
        self.shape, self.refs, self.positions, self.raised = shape, refs, positions, raised
        self.write, self.spot = write, spot
        self.at_once = at_once  # whether to compare at each step: several have turned out to be unlike
        self.n = self.known = 0  # steps like it, and how many of them have been compared
        self.compared = perf_counter()


class Steps:
    """Hears of steps while it is installed.

    Parameters
    ----------
    watched, log
        The tensors that are watched, and where writes are noted.
    where
        The place of the running code.
    spot
        The key of that place. None: all steps are looked at by themselves.
    unexplained
        Called when versions have changed in another way than the steps since would have changed them.
    """

    def __init__(
        self,
        watched: Watched,
        log: Log,
        *,
        where: Callable[[], Place | None],
        spot: Callable[[], tuple[int, int, int] | None],
        unexplained: Callable[[], None],
        problem: Callable[[BaseException], None],
    ) -> None:
        self.watched, self.log = watched, log
        self.where, self.spot, self.unexplained, self.problem = where, spot, unexplained, problem
        # Where lines are traced by `sys.settrace`: rest while our own code runs. Replaced by who traces; None: no need.
        self.pause: Callable[[], Any] | None = None
        self.unpause: Callable[[Any], None] = lambda paused: None
        self._resting: dict[int, Any] = {}  # thread -> how to trace again after a step
        self._handles: list[Any] = []
        # `id` of an optimizer -> ids of what its last step modified, and its write; what its steps usually do
        self._last: dict[int, tuple[list[int], Write]] = {}
        self.usual: dict[int, _Usual] = {}
        # `id` of an optimizer that has not modified anything yet -> its last step, as a write to nothing
        self.idle: dict[int, Write] = {}

    def install(self) -> None:
        """Hear of steps, if torch's optimizers are loaded."""
        module = sys.modules.get("torch.optim.optimizer")
        before = getattr(module, "register_optimizer_step_pre_hook", None)
        after = getattr(module, "register_optimizer_step_post_hook", None)
        if before is not None and after is not None and not self._handles:
            self._handles = [after(self._stepped)]
            if self.pause is not None:
                self._handles.append(before(self._stepping))

    def uninstall(self) -> None:
        """Undo `install`."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_cell(self) -> None:
        """Steps that raised are over."""
        self._resting.clear()

    def _stepping(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer begins a step. Lines need not be traced in it, unless it runs code of a cell."""
        paused = None
        try:
            assert self.pause is not None
            paused = self.pause()
            if paused is None:
                return
            own = _attributes(optimizer)
            hooks = own.get("_optimizer_step_pre_hooks") or own.get("_optimizer_step_post_hooks")
            if len(args) <= 1 and not kwargs and not hooks and _is_torch_s_own(optimizer):
                self._resting[threading.get_ident()] = paused
                paused = None
        except Exception as error:
            self.problem(error)
        finally:
            if paused is not None:
                self.unpause(paused)

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer has made a step."""
        paused = None
        if self.pause is not None:
            paused = self._resting.pop(threading.get_ident(), None) or self.pause()
        try:
            groups = _attributes(optimizer).get("param_groups", ())
            usual = self.usual.get(id(optimizer))
            with internals.quiet():
                if usual is None or not self._as_usual(optimizer, usual, groups):
                    self._look(optimizer, groups)
        except Exception as error:
            self.problem(error)
        finally:
            if paused is not None:
                self.unpause(paused)

    # ---------------------------------------------------------------- usual steps

    def _as_usual(self, optimizer: Any, usual: _Usual, groups: Any) -> bool:
        """Note a step as like those before it; False: it is not, or it cannot be told."""
        if usual.refs is not self.watched.refs or [len(group["params"]) for group in groups] != usual.shape:
            return False
        spot = self.spot()
        if spot is None or spot[:2] != usual.spot[:2]:
            return False
        usual.n += 1
        now = perf_counter()
        if usual.at_once or now - usual.compared > COMPARE_EVERY * len(usual.positions):
            usual.compared = now
            if not self._compare(id(optimizer), usual, noted=usual.n - usual.known > 1):
                return False
        self.log.entries.append(Step(spot, usual.write, self.log.calls(), id(optimizer), usual.n))
        return True

    def settle(self) -> None:
        """Compare what usual steps have done since it was last compared."""
        with internals.quiet():
            for optimizer, usual in list(self.usual.items()):
                if usual.n != usual.known:
                    self._compare(optimizer, usual, noted=True)

    def _compare(self, optimizer: int, usual: _Usual, noted: bool) -> bool:
        """Whether the steps not yet compared have raised the versions as usual. If not, those `noted` are forgotten."""
        versions, refs, positions = self.watched.versions, usual.refs, usual.positions
        steps, usual.known = usual.n - usual.known, usual.n
        if refs is not self.watched.refs:  # others are watched now: it was settled before
            return False
        parameters = [refs[at]() for at in positions]
        try:
            now = list(map(internals.version, parameters))
        except TypeError:  # one has died
            now = []
        raised = usual.raised if steps == 1 else [steps * by for by in usual.raised]
        if list(map(sub, now, map(versions.__getitem__, positions))) == raised and all(
            internals.storage_key(parameters[at]) in usual.write.storages for at in (0, -1)
        ):
            for at, version in zip(positions, now, strict=True):
                versions[at] = version
            return True
        if noted:
            usual.at_once = True
            self.log.forget_steps(optimizer, usual.n - steps)
            for at, version in zip(positions, now, strict=False):
                versions[at] = version
            self.unexplained()
        return False

    # ---------------------------------------------------------------- steps looked at by themselves

    def _look(self, optimizer: Any, groups: Any) -> None:
        """See what a step has modified, and note it."""
        self.settle()
        watched = self.watched
        parameters = [parameter for group in groups for parameter in group["params"]]
        changed, positions, raised = [], [], []
        for parameter in parameters:
            at = watched.index.get(id(parameter))
            if at is not None and watched.refs[at]() is parameter:
                now = internals.version(parameter)
                if now != watched.versions[at]:
                    positions.append(at)
                    raised.append(now - watched.versions[at])
                    watched.versions[at] = now
                    changed.append((watched.paths[at], parameter))
            elif internals.grad(parameter) is not None:
                changed.append(("", parameter))
        if not changed:
            self._note_idle(optimizer, parameters)
            return
        self.idle.pop(id(optimizer), None)
        place, key = self.where(), [id(tensor) for _, tensor in changed]
        last = self._last.pop(id(optimizer), None)
        if place is not None and last is not None and last[0] == key and _as_stored(changed, last[1]):
            # What the step before it did, as in a training loop.
            like = last[1]
            write: Write | None = Write(place, like.by, like.paths, like.storages, self.log.calls(), True)
            self.log.entries.append(write)  # type: ignore[arg-type]
            if len(positions) == len(parameters):
                self._remember(id(optimizer), [len(group["params"]) for group in groups], positions, raised, write)
        else:
            by = place.source if place is not None and ".step(" in place.source else ""
            write = self.log.add(place, by or f"{type(optimizer).__name__}.step()", changed, optimizer=True)
        if write is not None:
            if len(self._last) >= MAX_OPTIMIZERS:
                self._last.clear()
            self._last[id(optimizer)] = (key, write)

    def _note_idle(self, optimizer: Any, parameters: list[Any]) -> None:
        """A step that had no gradient to go by, of an optimizer that has never had one."""
        never = id(optimizer) not in self._last and id(optimizer) not in self.usual
        if not parameters or not never or any(internals.grad(one) is not None for one in parameters):
            return
        watched, place = self.watched, self.where()
        at = [watched.index.get(id(one), -1) for one in parameters]
        if min(at) < 0 or place is None or any(watched.refs[i]() is not one for i, one in zip(at, parameters)):
            return  # what has no name may be what the last backward gave a gradient
        if len(self.idle) < MAX_OPTIMIZERS or id(optimizer) in self.idle:
            names = tuple(watched.paths[i] for i in at)
            self.idle[id(optimizer)] = Write(place, place.source, names, (), self.log.calls(), True)

    def _remember(
        self, optimizer: int, shape: list[int], positions: list[int], raised: list[int], write: Write
    ) -> None:
        """Two steps after each other modified all parameters, all of them watched: that is usual."""
        spot = self.spot()
        if spot is None:
            return
        before = self.usual.get(optimizer)
        if before is None and len(self.usual) >= MAX_OPTIMIZERS:
            self.settle()
            self.usual.clear()
        at_once = before is not None and before.at_once
        usual = _Usual(shape, self.watched.refs, positions, raised, write, spot, at_once)
        if before is not None:
            usual.n = usual.known = before.n
        self.usual[optimizer] = usual


def _as_stored(changed: list[tuple[str, Any]], write: Write) -> bool:
    """Whether the first and the last tensor lie where they did when they were written."""
    return all(internals.storage_key(changed[at][1]) in write.storages for at in (0, -1))


def _is_torch_s_own(optimizer: Any) -> bool:
    return type(optimizer).__module__.startswith("torch.optim")


def _attributes(optimizer: Any) -> dict[str, Any]:
    """What is stored in the optimizer itself."""
    return vars(optimizer) if _is_torch_s_own(optimizer) else reading.own_attributes(optimizer)
