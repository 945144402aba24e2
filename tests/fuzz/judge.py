"""The judge of the differential fuzz: every call of the engine is forecast, run, and compared.

The judge compares whether the call raised and with which kind of error; the failing node; in traced calls the exact
order of execution and the shapes of the gradients; what happens to each `.grad` (`steps.py`); the state of every slot afterwards, also of nodes that did not run. An unknown forecast is judged,
too: its certain parts must hold. And observing must change nothing.
"""

from __future__ import annotations

import random
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from graphwidget import torch_internals as internals
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take
from graphwidget.diagnosis.written import Written
from graphwidget.engine import forecast as engine
from graphwidget.model import Forecast, SlotState, Snapshot
from tests.fuzz import prelude
from tests.fuzz.programs import program
from tests.fuzz.steps import StepsOfCall
from tests.fuzz.watching import Engine, reachable, watching

_WORDS = {  # in torch's message -> reason
    "second time": "freed",
    "modified by an inplace": "inplace",
    "use_reentrant=True, torch.utils": "checkpoint",
    "appears to not have been used": "unused",
    "moved into the graph interior": "leaf_interior",
    "differentiate twice": "not_differentiable",
    "derivative for": "not_differentiable",
    "derivative of": "not_differentiable",
    "detached in-place": "detached",
    "does not require grad": "no_grad",
    "on Tensor that has requires_grad=False": "no_grad",
    "was created in no_grad mode and its base": "no_grad",
    "refers to a single memory": "overlap",
    "boom": "raises",
    "ZeroTensors are immutable": "raises",
}
_local = threading.local()


def reason_of(error: BaseException) -> str:
    found = next((reason for words, reason in _WORDS.items() if words in str(error)), None)
    return found or f"{type(error).__name__}: {str(error)[:90]}"


@dataclass
class Mistake:
    seed: int
    statement: str
    what: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.statement}\n    {self.what}"


class Judge:
    """Runs programs and collects the differences.

    Parameters
    ----------
    forecaster
        The function to judge: `engine.forecast.forecast` or a replacement.
    traced
        Share of calls in which a hook on each node records the order.
    tracked
        Whether hooks and lost gradients are recorded, as a tracker does. Else only the facts that `graphwidget.forecast`
        alone can know are available, and only tensors with names.
    """

    def __init__(
        self, forecaster: Callable[..., Forecast] = engine.forecast, traced: float = 0.5, tracked: bool = True
    ) -> None:
        self.forecaster = forecaster
        self.traced = traced
        self.tracked = tracked
        self.counts: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        self.mistakes: list[Mistake] = []
        self.seed, self.statement = -1, ""

    def run(self, seed: int) -> None:
        """Run one program; errors of its statements are expected."""
        self.seed, self.chance = seed, random.Random(seed)
        self.namespace = {k: v for k, v in vars(prelude).items() if not k.startswith("__")}
        prelude.ELSEWHERE.clear()
        torch.manual_seed(seed)
        with watching(self._judged, notes=self.tracked), self._judged_grads(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for self.statement in program(seed):
                try:
                    exec(self.statement, self.namespace)
                except Exception as error:
                    if isinstance(error, _OursError):
                        raise
        self.counts["programs"] += 1

    def report(self) -> str:
        """Return a summary in a few lines, with unknown answers and assumptions by cause."""
        n = max(self.counts["calls"], 1)
        unknown, assumes = self.counts["unknown"], self.counts["assumes"]
        lines = [
            f"{self.counts['programs']} programs, {n} calls, {self.counts['raised']} of them raised; "
            f"{unknown} unknown ({unknown / n:.2%}), {assumes} with an assumption ({assumes / n:.2%}), "
            f"{self.counts['traced']} traced, {len(self.mistakes)} mistakes"
        ]
        lines += [f"  {count:6} {cause}" for cause, count in self.causes.most_common()]
        return "\n".join(lines)

    def wrong(self, what: str) -> None:
        self.mistakes.append(Mistake(self.seed, self.statement, what))

    # -- around the engine

    def _judged(self, real: Engine) -> Engine:
        def run(outputs: Any, grads: Any, keep: bool, create: bool, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            allow_unused = kwargs.get("allow_unreachable", args[0] if args else True)
            accumulates = kwargs.get("accumulate_grad", args[1] if len(args) > 1 else False)
            call = _Call(self, list(outputs), list(inputs or ()), bool(keep))
            try:
                call.predict(create, "backward" if accumulates else "grad", bool(allow_unused))
                trace = call.tracing() if self.chance.random() < self.traced else _untraced()
            except Exception as error:
                raise _OursError(f"seed {self.seed}: {self.statement}") from error
            error: BaseException | None = None
            with trace:
                try:
                    return real(outputs, grads, keep, create, inputs, *args, **kwargs)
                except BaseException as raised:
                    error = raised
                    raise
                finally:
                    call.compare(error)

        return run

    @contextmanager
    def _judged_grads(self) -> Iterator[None]:
        """Judge calls whose roots are no scalars: `_make_grads` refuses them before the engine runs."""
        real = torch.autograd._make_grads

        def make(outputs: Any, grads: Any, *args: Any, **kwargs: Any) -> Any:
            expected = None
            if all(grad is None for grad in grads):
                try:
                    graph = take(list(outputs), slots=False, settle=True)
                    expected = self.forecaster(graph, graph.roots).reason == "not_scalar"
                except Exception as error:
                    raise _OursError(f"seed {self.seed}: {self.statement}") from error
            try:
                result = real(outputs, grads, *args, **kwargs)
            except RuntimeError as error:
                if expected is False:
                    self.wrong(f"refused: {error}")
                raise
            if expected:
                self.wrong("was to be refused: not a scalar")
            return result

        torch.autograd._make_grads = make
        try:
            yield
        finally:
            torch.autograd._make_grads = real

    def visible_state(self) -> list[Any]:
        """Return everything that observing could change, without changing it."""
        state: list[Any] = [dict(prelude.counts), torch.get_rng_state().sum().item()]
        for name, value in self.namespace.items():
            if isinstance(value, torch.Tensor):
                safe = not value._is_view() and (value.is_leaf or value.retains_grad)
                grad = value.grad if safe else None
                state.append(
                    (name, value._version, value.requires_grad, id(grad), grad._version if grad is not None else 0)
                )
        return state


class _OursError(Exception):
    """Our code failed, not the program."""


@contextmanager
def _untraced() -> Iterator[None]:
    _stack().append(None)
    try:
        yield
    finally:
        _stack().pop()


def _stack() -> list[Any]:
    """Return the calls in progress on this thread: nested ones must not be traced as part of the outer one."""
    stack: list[Any] = _local.__dict__.setdefault("stack", [])
    return stack


class _Call:
    """One call of the engine: before, during, after."""

    def __init__(self, judge: Judge, outputs: list[Any], inputs: list[Any], keep: bool) -> None:
        self.judge, self.outputs, self.inputs, self.keep = judge, outputs, inputs, keep
        self.identity = Identity()
        self.log: list[int] | None = None
        self.uids: dict[Any, int] = {}

    def look(self, settle: bool) -> Snapshot:
        tracked, named = self.judge.tracked, self.judge.namespace.values()
        return take(
            self.outputs,
            inputs=self.inputs,
            identity=self.identity,
            freed_by={} if tracked else None,
            settle=settle,
            refuses_inputs=internals.refuses_reentrant_checkpoints(),
            outputs=True,
            thorough=not tracked,
            around=() if tracked else [value for value in named if internals.is_tensor(value)],
        )

    def predict(self, create: bool, api: str, allow_unused: bool) -> None:
        judge = self.judge
        before, number = judge.visible_state(), internals.sequence_nr()
        self.look(settle=False)
        if internals.sequence_nr() != number and not any(t._is_view() for t in (*self.outputs, *self.inputs)):
            judge.wrong("looking took sequence numbers")
        self.graph = self.look(settle=judge.tracked)  # the engine is about to unpack the same slots
        self.told = judge.forecaster(
            self.graph,
            self.graph.roots,
            inputs=self.graph.inputs if self.inputs else None,
            retain_graph=self.keep,
            create_graph=create,
            api=api,
            allow_unused=allow_unused,
            grad_given=True,
        )
        self.steps = StepsOfCall(
            self.graph, self.outputs, self.identity, Written(True, self.keep, create, bool(self.inputs)), api
        )
        if judge.visible_state() != before:
            judge.wrong("looking changed something")

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Record the order of execution by a hook on each node."""
        nodes = reachable(self.outputs)
        numbers, names = [node._sequence_nr() for node in nodes], [internals.name_of(node) for node in nodes]
        uids = self.identity.assign(nodes, numbers, names)
        self.log, self.traced = [], set(uids)
        log, stack = self.log, _stack()

        def recorder(uid: int) -> Callable[[Any], None]:
            def record(grads: Any) -> None:
                if stack[-1] is self:
                    log.append(uid)
                    self.steps.arrived(uid, grads)

            return record

        handles = [node.register_prehook(recorder(uid)) for node, uid in zip(nodes, uids, strict=True)]
        del nodes
        stack.append(self)
        try:
            yield
        finally:
            stack.pop()
            for handle in handles:
                handle.remove()

    def compare(self, error: BaseException | None) -> None:
        told, judge = self.told, self.judge
        happened = "ok" if error is None else reason_of(error)
        judge.counts.update(calls=1, raised=error is not None, traced=self.log is not None)
        judge.counts[f"outcome {happened.split(':')[0]}"] += 1
        certain = told.ok is not None and not told.assumes
        if not certain:
            judge.counts["assumes" if told.assumes else "unknown"] += 1
            cause = told.assumes[0] if told.assumes else told.why
            cause = told.assumes[0] if told.assumes else told.why
            judge.causes[re.sub(r"\b\w+Backward\w*|\bt\d+\b|\bw\d+\b|\ba tensor\b", "N", cause)] += 1
        elif told.word != happened:
            judge.wrong(f"{happened}, not {told.word} ({told.why}): {error}")
            return
        if self.log is not None and (certain or told.ok is None):
            self._compare_order(certain)
        if certain:
            for what in self.steps.differences(self.log):
                judge.wrong(what)
        if certain or (told.ok is None and not told.assumes):
            self._compare_slots(certain)

    def _compare_order(self, certain: bool) -> None:
        ran = [node.uid for node in self.told.executes]
        if certain and self.told.fails_at is not None and self.told.reason != "raises":
            ran.append(self.told.fails_at.uid)
        ran = [uid for uid in ran if uid in self.traced]
        log = self.log or []
        if certain and self.told.reason == "raises":  # a hook raises before ours is called, a backward after
            log = log[: len(ran)]
        if (log if certain else log[: len(ran)]) != ran:
            self.judge.wrong(f"ran in the order {log}, not {ran}")

    def _compare_slots(self, certain: bool) -> None:
        """Compare the state of every slot afterwards with the state that the forecast implies."""
        then, real = engine.after(self.graph, self.told), self.look(settle=True)
        for node in then.nodes:
            at = real.index_of.get(node.uid)
            expected = [slot.state for slot in node.saved]
            if at is None:
                continue  # a view among the roots got new nodes
            found = [slot.state for slot in real.node(at).saved]
            if SlotState.FREED in found and len(found) != len(expected):
                found = [SlotState.FREED] * len(expected)  # a released list does not show its length
            for i, slot in enumerate(node.saved):
                # It is unknown whether a gradient was added to a `.grad` that the node saved: count the case as open.
                may = self.graph.slot_storage[slot.slot] in self.told.may_write
                if may and expected[i] == SlotState.UNKNOWN and found[i] in (SlotState.HELD, SlotState.STALE):
                    found[i] = expected[i]
                    self.judge.counts["open slots"] += 1
            if not certain:
                found = [f if e == SlotState.FREED else e for f, e in zip(found, expected, strict=True)]
            if found != expected:
                self.judge.wrong(
                    f"{node.name} has {[s.word for s in found]} afterwards, not {[s.word for s in expected]}"
                )
                return
