"""What is wrong between optimizers and gradients, as it was seen at their steps."""

from __future__ import annotations

from dataclasses import dataclass

from graphwidget.model.graph.parts import Place

__all__ = [
    "Container",
    "EmptyGroup",
    "FalseFlag",
    "KeptGradients",
    "LostGradients",
    "MovedWhileFrozen",
    "NonFiniteParameters",
    "StarvedParameters",
    "UnheldLeaf",
]


@dataclass(frozen=True, slots=True)
class StarvedParameters:
    """What the steps of one optimizer left unchanged because it had no gradient in any of them.

    `place` is the last step's, `paths` name the parameters, `steps` says how many steps there were, and `held` how many
    parameters the optimizer had when it made the first. `positions`: of each path which parameter it is, as in
    `MeasuredCut.positions`.
    """

    place: Place
    paths: tuple[str, ...]
    steps: int
    held: int
    positions: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Container:
    """A list, tuple or dict of Python's (`kind`) that is the attribute `name` of a module of a class.

    `resting`: what is in it was in evaluation mode while that module was in training mode.
    """

    kind: str
    class_name: str
    name: str
    resting: bool = False


@dataclass(frozen=True, slots=True)
class UnheldLeaf:
    """A leaf with a gradient that no optimizer held at any of its steps, and that nothing wrote to.

    `place` is a step's. `orphans` are the sizes of parameters that optimizers held then, without a gradient, and
    that no variable or module led to: of those that hold a part of the smallest module around it of which any does.
    `parameter`: it is an `nn.Parameter`. `by_hand`: no optimizer has made a step; lines of the program wrote to
    other leaves that had a gradient. `uniform`: it is small, and all its values are equal (a single one is a round
    number), so nothing that was learned elsewhere is in it. `grows`: its `.grad` was one tensor whenever it was
    looked at, had been added to, and is not zero. `dims`: how many dimensions it has; -1: unknown. `waiting`: an
    optimizer that has made no step holds it. `thawed`: at an earlier step it was there, and required no grad.
    `container`: it is in there, and the module does not register it. `within`: the names of the classes of the
    modules that it is in, and of their bases. `beside_held`: a module has it beside another parameter that an
    optimizer holds. `inside`: what it is called in each module around it of which no optimizer holds anything.
    `partly_held`: an optimizer holds something of a module around it, whichever.
    `copy_of`: a parameter without a gradient that an optimizer holds has the same name in its module, and its
    values.
    """

    path: str
    place: Place
    orphans: tuple[tuple[int, ...], ...] = ()
    parameter: bool = True
    by_hand: bool = False
    uniform: bool = False
    grows: bool = False
    dims: int = -1
    waiting: bool = False
    thawed: bool = False
    container: Container | None = None
    within: frozenset[str] = frozenset()
    beside_held: bool = False
    inside: tuple[str, ...] = ()
    copy_of: str = ""
    partly_held: bool = False


@dataclass(frozen=True, slots=True)
class FalseFlag:
    """A module or tensor that steps of optimizers changed while an attribute said that it requires no grad.

    `place` is the last such step's, `path` names the module or tensor, `name` the attribute: it is none that torch
    reads. `class_name` is that of the module, empty for a tensor. `changed` names parameters, as far as they have
    names, `steps` says how many steps there were.
    """

    place: Place
    path: str
    name: str
    class_name: str = ""
    changed: tuple[str, ...] = ()
    steps: int = 1


@dataclass(frozen=True, slots=True)
class EmptyGroup:
    """A group of an optimizer that had no parameters at its first step, where that of an earlier optimizer had some.

    `place` is that first step's, `group` the position of the group, `before` how many parameters it had in the earlier
    optimizer; `paths` names some of them, as far as they have names.
    """

    place: Place
    group: int
    before: int
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MovedWhileFrozen:
    """Parameters that require no grad, and that steps of their optimizer changed: a `.grad` was still there.

    `place` is the last such step's, `paths` names them, as far as they have names. `zero`: the gradient was zero each
    time, so what the optimizer remembers (a momentum, averages) or a decay of weights changed them.
    """

    place: Place
    paths: tuple[str, ...]
    zero: bool


@dataclass(frozen=True, slots=True)
class KeptGradients:
    """A parameter whose `.grad` an earlier step of its optimizer had used already, and to which calls had only added.

    `place` is a step's, `path` names the parameter, `steps` says how many there were of these steps and the one before
    them. `after_calls` counts the backward calls that had begun before the one at `place`. `surplus`: how often it was
    written to behind the last call, and by the step itself. `by_hand`: no optimizer made the steps; a line of the
    program wrote to the parameter. `cleared`: at how many other steps it was another tensor, had not grown, or had been
    written to before a call added to it. `added`: how many gradients the first step had added up in it; where there was
    no such step, `steps` is 1.
    """

    place: Place
    path: str
    steps: int
    after_calls: int
    surplus: int = 0
    by_hand: bool = False
    cleared: int = 0
    added: int = 0


@dataclass(frozen=True, slots=True)
class LostGradients:
    """A parameter of an optimizer whose gradient was gone again before a step used it, at each of several steps.

    `place` is a step's, `path` names the parameter. `lost` is the n of the last call before that step whose gradient
    was gone when the next call began, `used` that of the call by which the step went, and `often` says how many calls
    were lost since the step before.
    """

    place: Place
    path: str
    lost: int
    used: int
    often: int


@dataclass(frozen=True, slots=True)
class NonFiniteParameters:
    """Parameters of an optimizer that are not finite after its steps.

    `value`: ``"nan"`` if one of them is, else ``"inf"`` or ``"-inf"``. `paths` name them, as far as they have names.
    `place` is that of an early step after which one was seen; None: it was seen only at the end. `steps`: how many
    there were.
    """

    place: Place | None
    paths: tuple[str, ...]
    value: str
    steps: int
