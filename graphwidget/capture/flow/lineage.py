"""Measures where values leave the graph, while a program runs: from operation to operation.

PyTorch hands every operation that Python code calls on tensors to an active mode (`torch.overrides.TorchFunctionMode`).
An operation that is given a value with a graph and returns one without is a *cut*. A value without a graph remembers
the cuts behind it, and the frozen parameters that it was made from. So for the root of a call that fails, the lines
that left it without a graph are known, however the program is written.

What this package reads of tensors meanwhile it reads with modes off (`torch_internals.quiet`). All this costs much.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget.capture.flow.cuts import MOST_BEHIND, Behind, Cut, as_measured, last_first, taken
from graphwidget.capture.flow.emptied import EmptiedGradients
from graphwidget.capture.flow.leaves.constants import Constants, Frames
from graphwidget.capture.flow.leaves.copies import SAME, Copies
from graphwidget.capture.flow.leaves.fresh_leaves import FreshLeaves, is_fresh
from graphwidget.capture.flow.leaves.held_frozen import HeldFrozen
from graphwidget.capture.flow.leaves.hidden_writes import HiddenWrites
from graphwidget.capture.flow.leaves.idle_held import IdleHeld
from graphwidget.capture.flow.leaves.late_leaves import LateLeaves
from graphwidget.capture.flow.named_modules import modules_of
from graphwidget.capture.flow.nonfinite_steps import NonFiniteFlow
from graphwidget.capture.flow.numbers import carrying, cuts_in, numbers_in
from graphwidget.capture.flow.operands import held, is_index, is_parameter, leaves_behind, name_of, tensors_in
from graphwidget.capture.flow.single_values import SingleValues
from graphwidget.capture.flow.zero_gradients import ZeroFlow
from graphwidget.model import FrozenModule, Lineage, TextLine

__all__ = ["LineageMode"]

_MOST_CUTS = 500  # places and operations, in all
_MOST_LOOKS = 30  # times that the leaves behind one cut are looked up
_MOST_NUMBERS = 1000  # numbers of which it is remembered what they were taken from
_AS_ARRAYS = ("numpy", "__array__", "__dlpack__")
_CARRYING = ("item", "tolist")  # `__float__` may return a float itself and nothing else
_AS_NUMBERS = (*_CARRYING, "__float__", "__int__", "__bool__")

Lines = Callable[[], tuple[TextLine, ...]]


class LineageMode(TorchFunctionMode):
    """Active from `begin` on, for the rest of the process.

    Parameters
    ----------
    lines
        The lines of the user's own code that are running, the innermost first.
    name
        The name of a leaf; empty: it has none, or none is known yet.
    finite
        What measures where values stop to be finite; None: nothing does.
    frames
        The frames of the user's own code that are running, the innermost first.
    """

    def __init__(
        self, lines: Lines, name: Callable[[Any], str], finite: NonFiniteFlow | None = None, frames: Frames = tuple
    ) -> None:
        super().__init__()
        self._lines, self._name, self._finite = lines, name, finite
        self._behind = WeakTensorKeyDictionary()  # of values without a graph
        self._went_into = WeakTensorKeyDictionary()  # value, with or without a graph -> the cuts that it depends on
        self._chose = WeakTensorKeyDictionary()  # the same, where it depends on them only by what indices chose
        self._copies = Copies()
        self._cuts: dict[tuple[tuple[TextLine, ...], str, bool], Cut] = {}  # True: of leaves that were reached
        self._numbers: dict[float, Cut] = {}
        self._ran = 0
        self._grad_off: tuple[TextLine, ...] = ()  # the lines that switched grad mode off, while it is off
        self._switched_off = WeakTensorKeyDictionary()  # parameter -> lines at which it was frozen
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._stepped: weakref.WeakSet[Any] = weakref.WeakSet()  # optimizers that have made a step
        self._positions = WeakTensorKeyDictionary()  # parameter -> as in `MeasuredCut.positions`
        self._count = 0  # of optimizers that have made a step, in all
        self._zero_flow, self._fresh = ZeroFlow(), FreshLeaves(self._optimizers)
        self._hidden, self._held_frozen = HiddenWrites(self._fresh.is_held), HeldFrozen(name, lines, self.frozen_at)
        self._singles = SingleValues(lines, self._look, lambda one: self._behind.get(one, Behind()))
        self._late, self._idle = LateLeaves(lines), IdleHeld()
        self._constants = Constants(lines, frames)
        self._emptied = EmptiedGradients(lines, name, self._optimizers)
        self._cleared: list[weakref.ref[Any]] = []  # whose gradients were cleared since the last call

    def begin(self) -> None:
        """Measure from now on."""
        self._watch_optimizers()
        self._watch_parameters()
        self.__enter__()

    def end(self) -> None:
        """Measure no more. What `begin` has put around torch's classes stays."""
        self.__exit__(None, None, None)
        for handle in self._handles:
            handle.remove()

    def called(self, n: int, outputs: Any = ()) -> None:
        """The backward call n on these begins, and it is not the one that is asked for."""
        self._cleared.clear()
        self._constants.called()
        self._emptied.called(n)
        self._zero_flow.before_call(n, outputs)
        if self._finite is not None:
            self._finite.before_call(n, outputs)
        self._begin_at(outputs)
        self._fresh.called(n, list(tensors_in((outputs,))))
        self._singles.called(tensors_in((outputs,)))

    def _begin_at(self, outputs: Any) -> set[Cut]:
        """Note that a call begins at these. Returns the cuts that they depend on."""
        values, choices = (
            {cut for one in tensors_in((outputs,)) for cut in cuts.get(one, ())}
            for cuts in (self._went_into, self._chose)
        )
        fresh = list(self._fresh.reached(list(tensors_in((outputs,)))))
        for cut in (*values, *fresh):
            cut.used_by(self._lines())
        for cut in choices:
            cut.chosen = True
        for cut in fresh:
            self._join(cut)
        return values | choices

    def _watch_optimizers(self) -> None:
        made, cleared = torch.optim.Optimizer.__init__, torch.optim.Optimizer.zero_grad

        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._optimizers.add(optimizer)
            made(optimizer, *args, **kwargs)
            self._held_frozen.made(optimizer)
            self._idle.made(optimizer)

        def zero_grad(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self._cleared.append(weakref.ref(optimizer))
            return cleared(optimizer, *args, **kwargs)

        torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign, assignment]
        torch.optim.Optimizer.zero_grad = zero_grad  # type: ignore[method-assign]
        both = register_optimizer_step_pre_hook, register_optimizer_step_post_hook
        self._handles = [hook(own) for hook, own in zip(both, (self._before_step, self._step))] + [self._idle.begin()]

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._emptied.before_step(optimizer)
        if self._finite is not None:
            self._finite.before_step(held(optimizer))

    def _step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._emptied.step(optimizer)
        self._zero_flow.step(parameters := held(optimizer))
        self._held_frozen.step(optimizer, parameters)
        if self._finite is not None:
            self._finite.step(optimizer, parameters, self._name, self._lines())
        if optimizer in self._stepped:
            return
        self._stepped.add(optimizer)
        for at, parameter in enumerate(parameters):
            self._positions[parameter] = (*self._positions.get(parameter, ()), (self._count, at))
        self._count += 1
        for cut in self._cuts.values():  # the optimizer may be gone at the end
            for ref in cut.leaves.values():
                self._place(cut, ref())
        self._singles.stepped(self._place)

    def _place(self, cut: Cut, leaf: Any) -> None:
        if leaf is not None:
            cut.positions.update(self._positions.get(leaf, ()))

    def _watch_parameters(self) -> None:
        """A parameter that is made of a computed value is a new leaf. No mode is told of that operation."""
        made = torch.nn.Parameter.__new__

        def new(cls: Any, data: Any = None, *args: Any, **kwargs: Any) -> Any:
            parameter = made(cls, data, *args, **kwargs)
            # A copy of a module is another one on purpose.
            if isinstance(data, torch.Tensor) and sys._getframe(1).f_code.co_name != "__deepcopy__":
                if data.requires_grad and parameter.requires_grad:
                    self._note_leaf(parameter, "Parameter", [data])
                else:
                    self._fresh.note(parameter, self._went_into.get(data, ()))
            return parameter

        torch.nn.Parameter.__new__ = new  # type: ignore[method-assign, assignment]

    # ------------------------------------------------------------------ operations

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operation, and note what came of it."""
        kwargs = kwargs or {}
        # Not what was copied before.
        given = list(tensors_in(args[:1] if name_of(func) == "__deepcopy__" else (args, kwargs)))
        with_graph = [one for one in given if one.requires_grad]
        changing = self._emptied.before(func, args)
        result = func(*args, **kwargs)
        try:
            self._emptied.after(changing)
            if name_of(func) in _AS_NUMBERS:
                return self._number(name_of(func), given, with_graph, result)
            self._constants.operation(name_of(func), args, kwargs, given, result)
            self._idle.operation(name_of(func), given, tensors_in((result,)))
            self._note(func, args, kwargs, given, with_graph, result)
        except Exception:  # a tensor of a kind of its own: what is not known is not told
            pass
        return result

    def _note(
        self, func: Any, args: Any, kwargs: Mapping[str, Any], given: list[Any], with_graph: list[Any], result: Any
    ) -> None:
        by = name_of(func)
        if by == "_set_grad_enabled":
            self._grad_off = () if args[0] else self._grad_off or self._lines()
            return
        if by in ("requires_grad", "requires_grad_"):
            flag = args[1] if len(args) > 1 else kwargs.get("requires_grad", True)
            if flag and args[0].is_leaf and not is_parameter(args[0]):
                behind = self._behind.get(args[0], Behind())
                self._fresh.made(args[0], "requires_grad_", self._lines(), behind.cuts)
                self._late.told(args[0])
            self._held_frozen.told(args[0], bool(flag))
            if not flag and is_parameter(args[0]):
                self._switched_off[args[0]] = self._lines()
            return
        if with_graph and len(given) > 1 and self._note_write(by, args, given):
            return
        if by == "grad":
            return  # a gradient is no value that the tensor was computed from
        if by.endswith("_like") or by.startswith("new_"):
            return  # only the form of the tensor is used
        every = [args[0]] if by == "__setitem__" else list(tensors_in((result,)))
        if self._finite is not None:
            self._finite.operation(by, (args, kwargs), every, self._lines)
        self._singles.operation(by, given, every)
        self._late.operation(by, given, every)
        self._hidden.note(by, given, every)
        self._held_frozen.operation(by, given, every)
        outputs = [one for one in every if not one.requires_grad]
        into = (by.endswith("_") and not by.endswith("__")) or by == "__setitem__"
        if by in SAME or by == "copy_":
            self._copies.note(by, args, every)
        if len(every) == len(given) > len(outputs) > 0:
            return self._note_each(given, every)
        numbers = [one for one in given if not (with_graph and is_index(one))]
        carried = tuple(cuts_in((args, kwargs)))
        before = dict.fromkeys((*(cut for one in numbers for cut in self._went_into.get(one, ())), *carried))
        self._depend_by_choice(every, given, numbers)
        if by in _AS_ARRAYS:
            taken(before)
        if not outputs:
            self._depend(every, before)
            self._note_fresh(by, args, given, with_graph, every)
            return
        behind = Behind(carried)
        for one in given:
            if not one.requires_grad:
                behind |= self._behind.get(one, Behind())
                if is_parameter(one):
                    behind |= Behind(frozen=(weakref.ref(one),))
        if with_graph:
            cut = self._cut(by, with_graph, into=into and torch.is_grad_enabled() is False)
            behind |= Behind((cut,))
            if not cut.into:  # a statistic that later passes use is seldom what was meant to pass a gradient on
                before[cut] = None
        elif not given and by in ("tensor", "as_tensor", "full"):
            behind |= Behind(tuple(self._known_numbers(args)))
        if behind.cuts or behind.frozen:
            for one in outputs:
                if not is_parameter(one):
                    self._behind[one] = behind
        self._depend(every, before)

    def _note_write(self, by: str, args: Any, given: list[Any]) -> bool:
        """Whether a leaf is written to, and takes only the values of what has a graph: ``w.data = x``."""
        written = list(self._hidden.written(by, args, given))
        for whole, into in ((one, into) for one in written for into in one.into):
            cut = self._note_leaf(into, whole.by, whole.values)
            plain = not is_parameter(into) or (whole.carries and not into.requires_grad)
            if plain and not self._fresh.is_held(into):
                self._went_into[into] = (*self._went_into.get(into, ()), cut)[-MOST_BEHIND:]
                self._behind[into] = self._behind.get(into, Behind()) | Behind((cut,))
        return any(one.into[-1].requires_grad and one.into[-1].is_leaf for one in written)

    def _note_fresh(self, by: str, args: Any, given: list[Any], with_graph: list[Any], results: list[Any]) -> None:
        """A new leaf was made of values with a graph, or of numbers taken from such, as by ``torch.tensor``."""
        fresh = [one for one in results if by != "__deepcopy__" and is_fresh(one, given)]
        numbers = tuple(self._known_numbers(args)) if fresh and not with_graph else ()
        for one in fresh:
            if with_graph:
                self._fresh.made(one, by, self._lines(), (self._note_leaf(one, by, with_graph),))
            else:
                before = (cut for value in given for cut in self._behind.get(value, Behind()).cuts)
                self._fresh.made(one, by, self._lines(), (*before, *numbers))
                self._fresh.note(one, numbers)

    def _note_leaf(self, leaf: Any, by: str, values: list[Any]) -> Cut:
        """A leaf takes only the values of what has a graph: a cut of its own, as others of that line may go nowhere."""
        if self._fresh.takes_notes:
            cut = Cut(self._lines(), by, True, False, used=True)
            self._look(cut, values)
            self._fresh.note(leaf, (cut,))
        return self._cut(by, values, grad_mode=True)

    def _depend(self, outputs: Iterable[Any], cuts: Iterable[Cut]) -> None:
        """Note on which cuts some results depend. What a step or an average writes to a parameter does not count."""
        found = tuple(cuts)[-MOST_BEHIND:]
        for one in outputs if found else ():
            if not is_parameter(one):
                self._went_into[one] = found

    def _depend_by_choice(self, results: Iterable[Any], given: Iterable[Any], numbers: Iterable[Any]) -> None:
        """Note which cuts some results depend on by indices alone: by those that are given, or that chose what is."""
        by_value = {id(one) for one in numbers}
        found = dict.fromkeys(cut for one in given for cut in self._chose.get(one, ()))
        indices = (one for one in given if id(one) not in by_value)
        found |= dict.fromkeys(cut for one in indices for cut in self._went_into.get(one, ()))
        for one in results if found else ():
            if not is_parameter(one):
                self._chose[one] = tuple(found)[-MOST_BEHIND:]

    def _note_each(self, given: list[Any], results: list[Any]) -> None:
        """Each result is another form of one value: by ``broadcast_tensors``."""
        for one, result in zip(given, results):
            for known in (self._behind, self._went_into, self._chose):
                if one in known and not is_parameter(result):
                    known[result] = known[one]

    def _cut(self, by: str, values: list[Any], *, into: bool = False, grad_mode: bool = False) -> Cut:
        lines = self._lines()
        key = (lines, by, False)
        cut = self._cuts.get(key)
        if cut is None:
            cut = Cut(lines, by, grad_mode or torch.is_grad_enabled(), into, () if grad_mode else self._grad_off)
            cut.run_in(sys._getframe(1))
            if len(self._cuts) < _MOST_CUTS:
                self._cuts[key] = cut
        self._ran += 1
        cut.last = self._ran
        cut.times += 1
        if cut.times <= _MOST_LOOKS:
            self._look(cut, values)
        return cut

    def _look(self, cut: Cut, values: list[Any]) -> None:
        """Look up the leaves behind the values of a cut."""
        for leaf in leaves_behind(values):
            cut.leaves.setdefault(id(leaf), weakref.ref(leaf))
            if not cut.names.get(id(leaf)):
                cut.names[id(leaf)] = self._name(leaf)
            self._place(cut, leaf)
            source = self._copies.source_of(leaf)
            if source is not None and not cut.copies.get(id(source)):
                cut.copies[id(source)] = self._name(source)

    def _join(self, cut: Cut) -> None:
        """Add a cut of a leaf that was reached to the others of its line and operation."""
        if self._cuts.get((cut.lines, cut.by, False)) is cut:
            return
        key = (cut.lines, cut.by, True)
        if len(self._cuts) < _MOST_CUTS:
            self._cuts.setdefault(key, cut)
        known = self._cuts.get(key, cut)
        known.leaves |= cut.leaves
        known.names |= {at: name for at, name in cut.names.items() if name}
        known.copies |= cut.copies
        known.last = self._ran
        for ref in cut.leaves.values():
            self._place(known, ref())

    def _number(self, by: str, given: list[Any], with_graph: list[Any], result: Any) -> Any:
        """Note that numbers leave a tensor. Returns them, and they carry the cuts before them where they can."""
        before = dict.fromkeys(cut for one in given for cut in self._went_into.get(one, ()))
        if with_graph:
            cut = self._cut(by, with_graph, into=False)
            before[cut] = None
            for number in numbers_in(result):
                if len(self._numbers) < _MOST_NUMBERS:
                    self._numbers[number] = cut
        taken(before)
        return carrying(result, tuple(before)) if by in _CARRYING and before else result

    def _known_numbers(self, args: Any) -> Iterator[Cut]:
        """The cuts that numbers carry, or that returned such a number: a sum of numpy's may be the number itself."""
        yield from cuts_in(args)
        for number in numbers_in(args):
            if number in self._numbers:
                yield self._numbers[number]

    # ------------------------------------------------------------------ the answer

    def measured(
        self, call: int | None, outputs: Any = (), frames: Iterable[FrameType] = (), inputs: Iterable[Any] = ()
    ) -> Lineage:
        """What is known now.

        Parameters
        ----------
        call, outputs, inputs
            The n, the roots and the inputs of the call that is about to fail.
        frames
            Those of the user's own code that is running.
        """
        wanted, behind = self._wanted(), Behind()
        for one in tensors_in((outputs,)):
            behind |= self._behind.get(one, Behind())
        root = tuple(as_measured(cut, wanted) for cut in last_first(behind.cuts))
        used, frames = [(one, self.frozen_at(one)) for ref in behind.frozen if (one := ref()) is not None], [*frames]
        meant = [one for one, _ in used if id(one) in wanted]
        idle = self._idle.measured(self._optimizers, used, frames) if call is not None and not behind.cuts else None
        modules = tuple(FrozenModule(name, self.frozen_at(first)) for name, first in modules_of(meant, frames))
        asked = [*inputs]
        reached = self._begin_at(outputs) if asked else set[Cut]()
        everything = tuple(
            as_measured(cut, wanted, asked if cut in reached else ())
            for cut in sorted(self._cuts.values(), key=lambda cut: cut.last)
        )
        return Lineage(
            call,
            root,
            modules,
            everything,
            self._zero_flow.found(),
            self._finite.found if self._finite is not None else None,
            self._fresh.measured(wanted),
            self._singles.ends(),
            self._singles.terms(),
            self._late.behind(tensors_in((outputs,)), asked),
            self._emptied.found(),
            constants=self._constants.behind(tensors_in((outputs,))),
            held_frozen=self._held_frozen.found(),
            idle=idle,
        )

    def frozen_at(self, parameter: Any) -> tuple[TextLine, ...]:
        """The lines that switched a parameter off."""
        return self._switched_off.get(parameter, ())  # type: ignore[no-any-return]

    def _wanted(self) -> set[int]:
        """The ids of the parameters that the optimizer of this call trains."""
        asked = [one for ref in self._cleared if (one := ref()) is not None] or list(self._optimizers)
        return {id(parameter) for one in asked for group in one.param_groups for parameter in group["params"]}
