"""The steps of optimizers: each optimizer reports its own, wherever it is called from.

The versions of the parameters show which of them a step modified.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from operator import add
from types import FrameType
from typing import Any, NamedTuple

from graphwidget import torch_internals as internals
from graphwidget.capture.lines.provenance import NOWHERE, Provenance
from graphwidget.capture.owners import reading
from graphwidget.capture.writes.log import WriteLog
from graphwidget.capture.writes.optimizers.empty_groups import EmptyGroups
from graphwidget.capture.writes.optimizers.false_flags import FalseFlags
from graphwidget.capture.writes.optimizers.frozen import Frozen
from graphwidget.capture.writes.optimizers.kept_grads import KeptGrads
from graphwidget.capture.writes.optimizers.lost_grads import LostGrads
from graphwidget.capture.writes.optimizers.nonfinite import NonFiniteSteps
from graphwidget.capture.writes.optimizers.starved import Starved
from graphwidget.capture.writes.optimizers.unheld import Unheld
from graphwidget.capture.writes.optimizers.zero_grads import ZeroGrads
from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import Place, Write

__all__ = ["OptimizerSteps"]

_BEFORE, _AFTER = internals.STEP_HOOKS
MAX_OPTIMIZERS = 100  # optimizers whose last steps are remembered


class _LastStep(NamedTuple):
    """The last step of an optimizer: `id`s of the modified tensors, and the increases of their versions.

    `of_state`: the write to the optimizer's own state, if its watched tensors were modified, too.
    """

    ids: list[int]
    raised: list[int]
    write: Write
    of_state: Write | None


class _Usual:
    """What the next step of an optimizer leaves behind if it writes what the last step wrote, and nobody else writes.

    Attributes
    ----------
    watched
        The index of the watched tensors, as long as that stays the same.
    ids, positions, length
        `id`s of the parameters, the positions of these and of the optimizer's state, and the number of watched tensors.
    raises, before, after
        How far the last step raised the version of each, and the versions before and after the next step.
    first, last
        The indices of the first and the last parameter that a step raises; -1: steps cannot be compared like this.
    """

    __slots__ = ("after", "before", "first", "ids", "last", "length", "positions", "raises", "watched")

    def __init__(
        self, watched: WatchedTensors, parameters: list[Any], state: list[int], raises: dict[int, int]
    ) -> None:
        own = [at for one in parameters if (at := watched.position(one)) is not None]
        self.watched, self.length = watched.index, len(watched.refs)
        self.ids, self.positions = list(map(id, parameters)), own + state
        self.raises = [raises.get(at, 0) for at in self.positions]
        self.expect([watched.versions[at] for at in self.positions])
        written = [i for i in range(len(own)) if self.raises[i]] if len(own) == len(parameters) else []
        self.first, self.last = (written[0], written[-1]) if written else (-1, -1)

    def expect(self, before: list[int]) -> None:
        """Expect another such step, from these versions on."""
        self.before, self.after = before, list(map(add, before, self.raises))


class _WatchedState(NamedTuple):
    """The positions of an optimizer's state among the watched tensors, as long as those stay the same."""

    watched: dict[int, int]
    length: int
    positions: list[int]


class OptimizerSteps:
    """Records steps while it is installed.

    Parameters
    ----------
    watched, log
        The watched tensors, and the log of writes.
    provenance
        Knows where code is running.
    unexplained
        Called if a step raised versions by more than the step before did: other code has written in between.
    search
        Looks for the names that tensors have now, and watches those.
    """

    def __init__(
        self,
        watched: WatchedTensors,
        log: WriteLog,
        provenance: Provenance,
        *,
        unexplained: Callable[[], None],
        search: Callable[[], None],
        problem: Callable[[BaseException], None],
    ) -> None:
        self.watched, self.log, self.unexplained, self.problem = watched, log, unexplained, problem
        self.provenance, self.lines = provenance, provenance.lines
        self._resting: dict[int, Any] = {}  # thread -> what resumes tracing after a step
        self._handles: list[Any] = []
        self._last: dict[int, _LastStep] = {}  # by the `id` of the optimizer
        self._raised: dict[int, int] = {}  # how far the step that is looked at raised versions, by position
        self._usual: dict[int, _Usual] = {}  # the same: the steps that were like the step before
        self._state: dict[int, _WatchedState] = {}  # by the `id` of the optimizer
        # `id` of an optimizer that has never modified anything -> its last step, as a write without tensors
        self.idle: dict[int, Write] = {}
        self.starved, self.unheld = Starved(watched), Unheld(watched, search)
        self.kept_grads, self.lost_grads = KeptGrads(watched, log.calls), LostGrads(watched, log.calls)
        self.zero_grads, self.nonfinite = ZeroGrads(), NonFiniteSteps(watched)
        self.false_flags, self.frozen = FalseFlags(watched), Frozen(watched)
        self.empty_groups = EmptyGroups(watched)

    def install(self) -> None:
        """Begin to record steps, if torch's optimizers are loaded."""
        module = sys.modules.get("torch.optim.optimizer")
        before = getattr(module, "register_optimizer_step_pre_hook", None)
        after = getattr(module, "register_optimizer_step_post_hook", None)
        if before is not None and after is not None and not self._handles:
            self._handles = [after(self._stepped)]
            if self.lines.slow:
                self._handles.append(before(self._stepping))

    def let_go(self, tensor: Any) -> Callable[[], None]:
        """Drop every reference to a tensor for a while. Returns a function that restores them."""
        self.starved.forget(tensor)
        self.kept_grads.forget(tensor)
        self.lost_grads.forget(tensor)
        self.false_flags.forget(tensor)
        self.frozen.forget(tensor)
        return self.unheld.let_go(tensor)

    def uninstall(self) -> None:
        """Undo `install`."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_cell(self) -> None:
        """End the steps that raised, and begin anew to look for leaves that no optimizer holds."""
        self._resting.clear()
        self.unheld.end_cell()

    def _stepping(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Handle the start of a step. Its lines need not be traced, unless it runs code of a cell."""
        paused = None
        try:
            paused = self.lines.pause()
            if paused is None:
                return
            own = _attributes(optimizer)
            if len(args) <= 1 and not kwargs and not own.get(_BEFORE) and not own.get(_AFTER):
                if _is_torch_s_own(optimizer):
                    self._resting[threading.get_ident()] = paused
                    return
        except Exception as error:
            self.problem(error)
        self.lines.unpause(paused)

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Handle the end of a step."""
        paused = None
        if self.lines.slow:
            paused = self._resting.pop(threading.get_ident(), None) or self.lines.pause()
        try:
            groups = _attributes(optimizer).get("param_groups", ())
            with internals.quiet():
                self.empty_groups.step(optimizer, groups, lambda: self.provenance.where(sys._getframe()))
                parameters = [parameter for group in groups for parameter in group["params"]]
                self._compare(optimizer, parameters)
                # It may search for names, which begins to watch anew: what the step wrote has to be known before.
                self.unheld.step(optimizer, parameters, lambda: self.provenance.where(sys._getframe()))
        except Exception as error:
            self.problem(error)
        finally:
            if paused is not None:
                self.lines.unpause(paused)

    def _compare(self, optimizer: Any, parameters: list[Any]) -> None:
        """Find the parameters that a step has modified, and record the write."""
        frame = sys._getframe(1)

        def place_now() -> Place:
            return self.provenance.where(frame)

        self.starved.step(optimizer, parameters, place_now)
        self.kept_grads.step(optimizer, parameters, place_now)
        self.lost_grads.step(optimizer, parameters, place_now)
        self.zero_grads.step(optimizer, parameters)
        self.nonfinite.step(optimizer, parameters, place_now)
        self.false_flags.step(parameters, place_now)
        self.frozen.step(optimizer, parameters, place_now)
        if self._is_usual(optimizer, parameters, frame):
            return
        self._usual.pop(id(optimizer), None)
        changed, raised = self._changed(parameters)
        if not changed:
            self._record_idle(optimizer, parameters)
            return
        self.idle.pop(id(optimizer), None)
        state = self._changed_state(optimizer)
        ids = [id(tensor) for _, tensor in (*changed, *state)]
        where = self.lines.where(frame) or NOWHERE
        last = self._last.pop(id(optimizer), None)
        if last is not None and last.ids == ids and _as_stored(changed[0][1], changed[-1][1], last.write):
            write, of_state = last.write, last.of_state  # equal to the previous step, as in a training loop
            self.log.add_step(where, write, of_state)
            if last.raised != raised:
                self.unexplained()
            else:
                positions = self._state[id(optimizer)].positions
                self._usual[id(optimizer)] = _Usual(self.watched, parameters, positions, self._raised)
        else:
            place = self.provenance.place(where)
            by = place.source if ".step(" in place.source else f"{type(optimizer).__name__}.step()"
            new = self.log.add(place, by, changed, optimizer=True)
            of_state = self.log.add(place, by, state, optimizer=True, part=True) if state else None
            if new is None:
                return
            write = new
        if len(self._last) >= MAX_OPTIMIZERS:
            self._last.clear()
            self._usual.clear()
        self._last[id(optimizer)] = _LastStep(ids, raised, write, of_state)

    def _is_usual(self, optimizer: Any, parameters: list[Any], frame: FrameType) -> bool:
        """Whether a step has written what the step before wrote. Then it is recorded here.

        Versions only rise: if each has risen by what a step adds, nothing else has written since the last step.
        """
        usual, last, watched = self._usual.get(id(optimizer)), self._last.get(id(optimizer)), self.watched
        if usual is None or last is None or usual.first < 0:
            return False
        if usual.watched is not watched.index or usual.length != len(watched.refs):
            return False
        refs, versions, positions = watched.refs, watched.versions, usual.positions
        if list(map(id, parameters)) != usual.ids or [versions[at] for at in positions] != usual.before:
            return False  # others have written, which their lines have recorded
        tensors = [refs[at]() for at in positions]
        try:
            if list(map(internals.version, tensors)) != usual.after:
                return False
        except TypeError:  # one is gone
            return False
        if not _as_stored(tensors[usual.first], tensors[usual.last], last.write):
            return False
        for at, version in zip(positions, usual.after, strict=True):
            versions[at] = version
        usual.expect(usual.after)
        where = self.lines.where(frame) or NOWHERE
        self.log.add_step(where, last.write, last.of_state)
        return True

    def _changed_state(self, optimizer: Any) -> list[tuple[str, Any]]:
        """Return the names and tensors of the optimizer's own state that it has modified, such as averages.

        Otherwise the line that calls `step` would be compared in each pass of a loop, as one that writes.
        """
        watched = self.watched
        known = self._state.get(id(optimizer))
        if known is None or known.watched is not watched.index or known.length != len(watched.refs):
            if len(self._state) >= MAX_OPTIMIZERS:
                self._state.clear()
            kept = [i for one in _tensors_of_state(optimizer) if (i := watched.position(one)) is not None]
            known = self._state[id(optimizer)] = _WatchedState(watched.index, len(watched.refs), kept)
        changed = []
        refs, versions = watched.refs, watched.versions
        for at in known.positions:
            tensor = refs[at]()
            if tensor is not None and (now := internals.version(tensor)) != versions[at]:
                self._raised[at] = now - versions[at]
                versions[at] = now
                changed.append((watched.paths[at], tensor))
        return changed

    def _changed(self, parameters: list[Any]) -> tuple[list[tuple[str, Any]], list[int]]:
        """Return the names and tensors that a step has modified, and the version increases of the watched ones.

        A parameter that is not watched counts as modified if it has a gradient.
        """
        watched = self.watched
        self._raised.clear()
        changed: list[tuple[str, Any]] = []
        raised = []
        for parameter in parameters:
            at = watched.position(parameter)
            if at is not None:
                now = internals.version(parameter)
                if now != watched.versions[at]:
                    raised.append(now - watched.versions[at])
                    self._raised[at] = raised[-1]
                    watched.versions[at] = now
                    changed.append((watched.paths[at], parameter))
            elif internals.grad(parameter) is not None:
                changed.append(("", parameter))
        return changed, raised

    def _record_idle(self, optimizer: Any, parameters: list[Any]) -> None:
        """Record a step for which no parameter had a gradient, of an optimizer that has never had one."""
        never = id(optimizer) not in self._last
        if not parameters or not never or any(internals.grad(one) is not None for one in parameters):
            return
        watched, place = self.watched, self.provenance.where(sys._getframe())
        at = [i for one in parameters if (i := watched.position(one)) is not None]
        if len(at) < len(parameters):
            return  # a parameter without a name may be the one that the last backward reached
        if len(self.idle) < MAX_OPTIMIZERS or id(optimizer) in self.idle:
            names = tuple(watched.paths[i] for i in at)
            keys = tuple(found[0] for one in parameters if (found := internals.storage_of(one)) is not None)
            number = self.starved.number_of(optimizer)
            self.idle[id(optimizer)] = Write(
                place, place.source, names, keys, self.log.calls(), True, optimizer_at=number
            )


def _tensors_of_state(optimizer: Any) -> list[Any]:
    """Return the tensors that an optimizer keeps for its parameters, alone or in lists (`LBFGS`)."""
    state = _attributes(optimizer).get("state")
    kept = (
        [one for own in dict.values(state) if isinstance(own, dict) for one in dict.values(own)]
        if isinstance(state, dict)
        else []
    )
    lists = [one for several in kept if isinstance(several, list) for one in list.__iter__(several)]
    return [one for one in (*kept, *lists) if internals.is_tensor(one)]


def _as_stored(first: Any, last: Any, write: Write) -> bool:
    """Whether the first and the last tensor have the same storages as in an earlier write."""
    return internals.storage_key(first) in write.storages and internals.storage_key(last) in write.storages


def _is_torch_s_own(optimizer: Any) -> bool:
    return type(optimizer).__module__.startswith("torch.optim")


def _attributes(optimizer: Any) -> dict[str, Any]:
    """Return the attributes stored in the optimizer itself."""
    return vars(optimizer) if _is_torch_s_own(optimizer) else reading.own_attributes(optimizer)
